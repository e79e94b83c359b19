//! Runs that are ended by a signal at any moment: after how many seconds nothing is left of them.

use crate::process::say;
use anyhow::{Context, Result};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The signals, in turn, and the seconds within which nothing may be left.
const SIGNALS: [(&str, f64); 4] = [("KILL", 15.0), ("TERM", 10.0), ("INT", 10.0), ("HUP", 10.0)];
/// The latest moment of a signal, milliseconds: by then every stage of a run has begun.
const LATEST: u64 = 15_000;

pub(super) fn measure(program: &Path, count: u32, seed: u64) -> Result<Vec<String>> {
    let (mut wrong, mut worst) = (Vec::new(), [0.0_f64; 4]);
    let mut numbers = seed.max(1);
    for at in 0..count {
        numbers ^= numbers << 13;
        numbers ^= numbers >> 7;
        numbers ^= numbers << 17;
        let which = at as usize % SIGNALS.len();
        let (signal, limit) = SIGNALS[which];
        let delay = Duration::from_millis(numbers % LATEST);
        let (took, left) = one(program, signal, delay)?;
        worst[which] = worst[which].max(took);
        if took > limit || !left.is_empty() {
            wrong.push(format!("SIG{signal} after {delay:?}: {took:.1} s, left: {}", left.join(", ")));
        }
    }
    for ((signal, limit), worst) in SIGNALS.iter().zip(worst) {
        say(&format!(
            "kills      SIG{signal:<4} nothing left after {worst:.1} s at most (promised: {limit} s)"
        ));
    }
    say(&format!("kills      {count} runs on embedded clusters, {} left something", wrong.len()));
    Ok(wrong)
}

/// Seconds from the signal until nothing of the run can write any more, and what is left then.
#[expect(clippy::disallowed_methods, reason = "moments are what is measured here")]
fn one(program: &Path, signal: &str, delay: Duration) -> Result<(f64, Vec<String>)> {
    let folder = tempfile::tempdir()?;
    // Started by 'nohup' a run ignores SIGHUP, as it should.
    let mut child = Command::new("env")
        .arg("--default-signal=HUP")
        .arg(program)
        .args(["run", "--cluster", "embedded", "--out"])
        .arg(folder.path().join("out"))
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut said = child.stderr.take().context("a child without its pipe")?;
    // Whoever is not read from waits.
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = said.read_to_end(&mut text);
        text
    });
    std::thread::sleep(delay);
    Command::new("kill").args(["-s", signal, &child.id().to_string()]).status()?;
    let began = Instant::now();
    child.wait()?;
    // The reaper, too, has the run's standard error.
    let _ = reading.join();
    Ok((began.elapsed().as_secs_f64(), left_in(folder.path())?))
}

/// What a run has left in the folder that it had for temporary files, its results apart, and processes that name it.
pub(super) fn left_in(folder: &Path) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "out" {
            left.push(name);
        }
    }
    let mark = format!("{}/", folder.display());
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&mark) {
            left.push(line);
        }
    }
    Ok(left)
}
