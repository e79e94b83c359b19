//! A CCM that prints its credentials in every encoding it can think of: none of them is in any output of the run.

use crate::process::say;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The CCM: it prints each form of each secret, and ends. Inside the sandbox it can write no file that is
/// visible outside. So it also prints the secret itself as decimal numbers, each greater by one than a byte
/// of it, which no filter recognises. With a folder in `LEAK_COPIES` it writes the same forms of
/// `LEAK_SECRET` to files of that folder instead.
const CCM: &str = r#"#!/bin/sh
copies=$LEAK_COPIES
both() {
  n=$(cat)
  if [ -n "$copies" ]; then printf '%s' "$n" > "$copies/$1"; else printf 'E0101 leak %s: %s\n' "$1" "$n" >&2; fi
}
all() {
  printf '%s' "$2" | both "$1.asis"
  printf '%s' "$2" | tr a-z A-Z | both "$1.upper"
  printf '%s' "$2" | tr A-Z a-z | both "$1.lower"
  printf '%s' "$2" | base64 -w0 | both "$1.base64"
  printf 'Bearer %s' "$2" | base64 -w0 | both "$1.base64-bearer"
  printf 'x%s' "$2" | base64 -w0 | both "$1.base64-shift1"
  printf 'xy%s' "$2" | base64 -w0 | both "$1.base64-shift2"
  printf '%s' "$2" | base64 -w0 | tr '+/' '-_' | tr -d = | both "$1.base64url"
  printf '%s' "$2" | base64 -w76 | both "$1.base64-wrapped"
  printf '%s' "$2" | base64 -w20 | both "$1.base64-short-lines"
  printf '%s' "$2" | od -An -v -tx1 | tr -d ' \n' | both "$1.hex"
  printf '%s' "$2" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F | both "$1.hex-upper"
  printf '%s' "$2" | od -An -v -tx1 | both "$1.hex-dump"
  printf '%s' "$2" | fold -w 30 | both "$1.lines"
  printf '%s' "$2" | fold -w 30 | sed 's/$/\\n/' | tr -d '\n' | both "$1.escaped-lines"
  printf '%s' "$2" | fold -w 9 | sed "s/^/$(printf '\033')[31m/" | tr -d '\n' | both "$1.colours"
  printf '%s' "$2" | fold -w 9 | sed 's/^/\\u001b[0m/' | tr -d '\n' | both "$1.escaped-colours"
  printf '%s' "$2" | od -An -v -tx1 | sed 's/ /\\x/g' | tr -d '\n' | both "$1.c-escapes"
  printf '%s' "$2" | od -An -v -tx1 | sed 's/ /\\u00/g' | tr -d '\n' | both "$1.json-escapes"
  printf '%s' "$2" | od -An -v -tx1 | sed 's/ /%/g' | tr -d '\n' | both "$1.url-escapes"
}
secret() {
  all "$1" "$2"
  numbers=$(printf '%s' "$2" | od -An -v -tu1 | awk '{ for (i = 1; i <= NF; i++) printf " %d", $i + 1 }')
  printf 'E0101 secret %s:%s\n' "$1" "$numbers" >&2
}
if [ -n "$copies" ]; then all "$LEAK_NAME" "$LEAK_SECRET"; exit; fi
secret account "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
for value in $(env | grep -i token | cut -d= -f2-) $(cat /etc/*/token /etc/*/*token* 2>/dev/null); do
  secret "cloud-$(printf '%s' "$value" | cksum | cut -d' ' -f1)" "$value"
done
exit 1
"#;

/// The length of the pieces that are searched for.
const PIECE: usize = 24;

pub(super) fn measure(program: &Path) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let (copies, out) = (folder.path().join("copies"), folder.path().join("out"));
    std::fs::create_dir(&copies)?;
    let ccm = folder.path().join("ccm");
    std::fs::write(&ccm, CCM)?;
    std::fs::set_permissions(&ccm, std::fs::Permissions::from_mode(0o755))?;
    let console = Command::new(program)
        .args([
            "run",
            "--cluster",
            "embedded",
            "--clusters",
            "1",
            "--only",
            "OBS-10",
            "--only",
            "NODE-INIT-01",
        ])
        .arg("--binary")
        .arg(&ccm)
        .arg("--out")
        .arg(&out)
        .env("RUST_LOG", "debug")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut exits =
        vec![("standard output".to_owned(), console.stdout), ("standard error".to_owned(), console.stderr)];
    files(&out, &mut exits)?;
    for (number, (name, secret)) in secrets(&exits).into_iter().enumerate() {
        let status = Command::new(&ccm)
            .env("LEAK_COPIES", &copies)
            .env("LEAK_NAME", format!("{name}-{number}"))
            .env("LEAK_SECRET", secret)
            .status()?;
        if !status.success() {
            bail!("the forms of secret {name} could not be written: {status}");
        }
    }
    let exits: Vec<(String, String)> = exits.into_iter().map(|(name, bytes)| (name, bare(&bytes))).collect();
    let (mut wrong, mut forms) = (Vec::new(), 0);
    for entry in std::fs::read_dir(&copies)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        forms += 1;
        let form = bare(&std::fs::read(&path)?);
        // In a signed token the signature is the secret, at its end.
        let from = if name.starts_with("account") { form.len() - form.len() / 14 } else { 0 };
        let pieces: Vec<&str> =
            (from..form.len().saturating_sub(PIECE - 1)).map(|at| &form[at..at + PIECE]).collect();
        for (exit, text) in &exits {
            if pieces.iter().any(|piece| text.contains(piece)) {
                wrong.push(format!("{name} is in {exit}"));
            }
        }
    }
    if forms < 20 {
        let said =
            exits.iter().map(|(name, text)| format!("{name}: {} bytes", text.len())).collect::<Vec<_>>();
        bail!("the CCM printed {forms} forms of secrets, not 20 and more ({})", said.join(", "));
    }
    say(&format!("secrets    {forms} forms through {} exits, {} found", exits.len(), wrong.len()));
    Ok(wrong)
}

/// The secrets that the CCM has printed as numbers, each with its name.
fn secrets(exits: &[(String, Vec<u8>)]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (_, bytes) in exits {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines().filter_map(|line| Some(line.split_once("E0101 secret ")?.1)) {
            let Some((name, numbers)) = line.split_once(':') else { continue };
            let byte = |number: &str| u8::try_from(number.parse::<u16>().ok()?.checked_sub(1)?).ok();
            let secret: Option<Vec<u8>> = numbers.split_whitespace().map(byte).collect();
            found.extend(secret.and_then(|s| String::from_utf8(s).ok()).map(|s| (name.to_owned(), s)));
        }
    }
    found
}

/// All files in a folder, recursively.
fn files(folder: &Path, into: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, into)?;
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            into.push((name, std::fs::read(&path)?));
        }
    }
    Ok(())
}

/// A text without spaces, line breaks and colours, in lower case.
fn bare(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.replace("\\n", "").replace("\\u{1b}", "\u{1b}").replace("\\u001b", "\u{1b}");
    let (mut bare, mut signs) = (String::with_capacity(text.len()), text.chars());
    while let Some(sign) = signs.next() {
        if sign == '\u{1b}' {
            signs.find(char::is_ascii_alphabetic);
        } else if !sign.is_whitespace() && !sign.is_control() {
            bare.push(sign.to_ascii_lowercase());
        }
    }
    bare
}
