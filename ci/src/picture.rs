//! `docs/run.svg`: a picture of a terminal in which the program has found a bug, for README and book.
//!
//! The run is a real one, in a real terminal (a pseudo-terminal): the reference CCM with an injected bug, in a folder as a vendor
//! has it.

use crate::process::{program, root, say};
use anstyle_svg::Term;
use anyhow::{Context, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The picture.
const PICTURE: &str = "docs/run.svg";
/// The injected bug: a Service's new node port is ignored.
const MUTANT: &str = "M-SV-26b";
/// What is typed, after the name of the program.
const TYPED: [&str; 9] = [
    "run",
    "--cluster",
    "embedded",
    "--profile",
    "./acme",
    "--binary",
    "./acme-ccm",
    "--only",
    "SVC-UPD-01*",
];
/// Rows and columns of the terminal. Everything that is printed fits into the rows.
const SIZE: (u16, u16) = (200, 110);

/// Runs the program and writes the picture.
pub(crate) fn draw() -> Result<()> {
    // Next to the target folder, which may be elsewhere: the CCM has to see it.
    let target = root().join("target");
    fs::create_dir_all(&target).context("the folder target")?;
    let folder = tempfile::tempdir_in(target).context("a folder in target")?;
    let program = program("ccm-conformance")?;
    prepare(folder.path(), &program)?;
    let mut command = Command::new(&program);
    command.args(TYPED).current_dir(folder.path()).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CI", "GITHUB_ACTIONS"] {
        command.env_remove(variable);
    }
    let text = screen_of(command)?;
    if !text.contains("NOT CONFORMANT") {
        bail!("a run that finds a bug was expected:\n{text}");
    }
    let typed = TYPED.map(|word| if word.contains('*') { format!("'{word}'") } else { word.to_owned() });
    let whole = format!("\u{1b}[1m$ ccm-conformance {}\u{1b}[0m\n{text}\n", typed.join(" "));
    let svg = Term::new().render_svg(&whole);
    let picture = root().join(PICTURE);
    fs::write(&picture, svg).with_context(|| format!("writing {}", picture.display()))?;
    say(&format!("wrote {PICTURE}"));
    Ok(())
}

/// What a terminal shows after a command has ended in it, with escape sequences for colours.
fn screen_of(mut command: Command) -> Result<String> {
    let (rows, columns) = SIZE;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("a pseudo-terminal")?;
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).context("opening a pseudo-terminal")?;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).context("the size of a pseudo-terminal")?;
    let name = ptsname(&terminal, Vec::new()).context("the name of a pseudo-terminal")?;
    let side =
        || OpenOptions::new().read(true).write(true).open(Path::new(OsStr::from_bytes(name.as_bytes())));
    command.stdout(side()?).stderr(side()?).env("TERM", "xterm-256color");
    let mut child = command.spawn().context("starting the program")?;
    // Reading ends when nothing has the other side open.
    drop(command);
    let cells = |number| std::num::NonZero::new(number).context("a size of 0");
    let mut parser = vt100::Parser::new(cells(rows)?, cells(columns)?, 0);
    let (mut reader, mut part) = (File::from(terminal), [0; 4096]);
    while let Ok(length @ 1..) = reader.read(&mut part) {
        parser.process(&part[..length]);
    }
    child.wait().context("waiting for the program")?;
    let screen = parser.screen();
    let plain: Vec<String> = screen.rows(0, columns).collect();
    let formatted: Vec<String> =
        screen.rows_formatted(0, columns).map(|row| format!("{row}\u{1b}[0m")).collect();
    Ok(shortened(&plain, &formatted))
}

/// The rows up to the end of the failure, and those from the verdict on.
fn shortened(plain: &[String], formatted: &[String]) -> String {
    let find = |text: &str| plain.iter().position(|row| row.contains(text));
    let end = plain.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |at| at + 1);
    let (failure, verdict) =
        (find("explain: ").map_or(end, |at| at + 1), find("NOT CONFORMANT").unwrap_or(end));
    let mut shown = formatted[..failure.min(verdict)].to_vec();
    shown.push("…".to_owned());
    shown.extend_from_slice(&formatted[verdict..end]);
    shown.join("\n")
}

/// A vendor's folder: a profile with its manifests, and the CCM.
fn prepare(folder: &Path, program: &Path) -> Result<()> {
    let (ours, acme) = (root().join("fixtures/ccms"), folder.join("acme"));
    fs::create_dir_all(acme.join("manifests"))?;
    let profile =
        fs::read_to_string(ours.join("mutants/profile.yaml")).context("reading the mutants' profile")?;
    let profile =
        profile.replace("name: mutants", "name: acme").replace("../reference/manifests", "manifests");
    fs::write(acme.join("profile.yaml"), profile)?;
    for entry in
        fs::read_dir(ours.join("reference/manifests")).context("reading the reference CCM's manifests")?
    {
        let path = entry?.path();
        fs::copy(&path, acme.join("manifests").join(path.file_name().unwrap_or_default()))?;
    }
    let ccm = folder.join("acme-ccm");
    let script = format!(
        "#!/bin/sh\nexec \"$(dirname \"$0\")/program\" reference-ccm-mutant --mutant={MUTANT} \"$@\"\n"
    );
    fs::write(&ccm, script)?;
    fs::set_permissions(&ccm, PermissionsExt::from_mode(0o755))?;
    fs::copy(program, folder.join("program")).context("copying the program")?;
    Ok(())
}
