//! Malformed inputs from a committed corpus, for every command that reads a file: each is rejected with a
//! clear message, soon, and with little memory.

use super::watched::{peak_memory, until_it_ends};
use crate::process::{root, say};
use anyhow::{Context, Result};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The corpus: texts, and the commands that read a file.
const CORPUS: &str = "ci/malformed.json";
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The most memory that one may use, in KiB.
const MEMORY: u64 = 256 << 10;
/// How often the memory of the process is read.
const LOOK: Duration = Duration::from_millis(5);

/// The result for one input.
struct Outcome {
    code: Option<i32>,
    took: Duration,
    memory: u64,
    said: String,
}

pub(super) fn measure(program: &Path, every: usize) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root().join(CORPUS)).context(CORPUS)?;
    let corpus: Value = serde_json::from_str(&text).context(CORPUS)?;
    let folder = tempfile::tempdir()?;
    let inputs = inputs(&corpus, folder.path())?;
    let (mut wrong, mut count, mut slowest, mut largest) = (Vec::new(), 0_u32, Duration::ZERO, 0);
    let commands = corpus["commands"].as_object().context("the corpus has no commands")?;
    let pairs =
        commands.iter().flat_map(|(name, words)| inputs.iter().map(move |input| (name, words, input)));
    for (command, words, (input, path)) in pairs.step_by(every.max(1)) {
        let outcome = one(program, words, path, folder.path())?;
        count += 1;
        slowest = slowest.max(outcome.took);
        largest = largest.max(outcome.memory);
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let objection = match &outcome {
            Outcome { said, .. } if said.contains("panicked") => Some("it panicked"),
            Outcome { code: None, .. } => Some("it did not end"),
            Outcome { code: Some(1 | 2), .. } if !outcome.said.contains(&file) => {
                Some("the error does not name the file")
            }
            Outcome { code: Some(1 | 2), .. } => None,
            _ => Some("it was not refused"),
        };
        let objection = objection.or((outcome.memory > MEMORY).then_some("it took too much memory"));
        if let Some(objection) = objection {
            let first: String = outcome.said.lines().next().unwrap_or_default().chars().take(120).collect();
            wrong.push(format!("{command} of {input}: {objection} (code {:?}, {first})", outcome.code));
        }
    }
    say(&format!(
        "inputs     {count} malformed, {} not refused clearly; {:.1} s and {} MiB at most",
        wrong.len(),
        slowest.as_secs_f64(),
        largest >> 10
    ));
    Ok(wrong)
}

/// Every input: its name and its path.
fn inputs(corpus: &Value, folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut all = Vec::new();
    for (name, text) in corpus["texts"].as_object().context("the corpus has no texts")? {
        let path = folder.join(format!("{name}.yaml"));
        let repeat = text["times"].as_u64().unwrap_or(1);
        let piece = text["text"].as_str().or(text.as_str()).unwrap_or_default();
        std::fs::write(&path, piece.repeat(usize::try_from(repeat)?))?;
        all.push((name.clone(), path));
    }
    for (name, bytes) in [("not-utf-8", &b"\xff\xfe\x00a"[..]), ("cut-in-a-sign", &b"name: \xc3"[..])] {
        let path = folder.join(format!("{name}.yaml"));
        std::fs::write(&path, bytes)?;
        all.push((name.to_owned(), path));
    }
    let pipe = folder.join("pipe.yaml");
    Command::new("mkfifo").arg(&pipe).status()?;
    let (one, other) = (folder.join("loop.yaml"), folder.join("other.yaml"));
    std::os::unix::fs::symlink(&one, &other)?;
    std::os::unix::fs::symlink(&other, &one)?;
    let large = folder.join("large.yaml");
    File::create(&large)?.set_len(1 << 30)?;
    let directory = folder.join("folder.yaml");
    std::fs::create_dir(&directory)?;
    for path in
        [pipe, one, large, directory, folder.join("absent.yaml"), "/dev/zero".into(), "/dev/full".into()]
    {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.push((name, path));
    }
    Ok(all)
}

fn one(program: &Path, words: &Value, path: &Path, folder: &Path) -> Result<Outcome> {
    let word = |word: &Value| -> OsString {
        match word.as_str() {
            Some("FILE") => path.into(),
            Some("OUT") => folder.join("out").into(),
            word => word.unwrap_or_default().into(),
        }
    };
    let said = folder.join("said");
    let mut child = Command::new(program)
        .args(words.as_array().into_iter().flatten().map(word))
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(File::create(folder.join("out.txt"))?)
        .stderr(File::create(&said)?)
        .spawn()?;
    let (began, mut memory) = (Instant::now(), 0);
    let ended = until_it_ends(&mut child, LOOK, LIMIT, |process| memory = memory.max(peak_memory(process)))?;
    let code = ended.and_then(|status| status.code());
    let text =
        format!("{}{}", std::fs::read_to_string(&said)?, std::fs::read_to_string(folder.join("out.txt"))?);
    Ok(Outcome { code, took: began.elapsed(), memory, said: text })
}
