//! Drivers and CCMs that write without an end, and clients that never read: the most memory that the harness takes of it.

use super::watched::{peak_memory, until_it_ends};
use crate::process::say;
use anyhow::{Context, Result, bail};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A driver that is hostile in the way that its first argument says.
const DRIVER: &str = include_str!("memory/driver.py");
/// The ways, and whether such a driver is refused.
const DRIVERS: [(&str, bool); 8] = [
    ("stdout-without-line-end", true),
    ("stderr-without-line-end", true),
    ("endless-lines", true),
    ("endless-capabilities", true),
    ("endless-head", true),
    ("endless-inventory", true),
    ("endless-error", true),
    ("floods-while-it-works", false),
];
/// A CCM that is hostile in the way that stands in place of `MODE`, and notes what it has done where `DONE` says.
const CCM: &str = include_str!("memory/ccm.py");
const CCMS: [&str; 2] = ["writes", "unread"];
/// The most memory that a check of a driver may take, and a run whose CCM is hostile, MiB: as docs/reliability.md has them.
const MOST_OF_A_CHECK: u64 = 192;
const MOST_OF_A_RUN: u64 = 384;
/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// After that something has got stuck.
const LIMIT: Duration = Duration::from_secs(300);

/// What became of one of them.
struct Outcome {
    code: Option<i32>,
    memory: u64,
    took: Duration,
    said: String,
}

pub(super) fn measure(program: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let folder = tempfile::tempdir()?;
    let driver = folder.path().join("driver.py");
    std::fs::write(&driver, DRIVER)?;
    for (mode, is_refused) in DRIVERS {
        let mut command = Command::new(program);
        command.args(["driver", "check", "--command", "python3"]).arg(&driver);
        command.args([mode, "${DRIVER_LISTEN}", "${DRIVER_TOKEN_FILE}"]);
        let outcome = one(command, folder.path())?;
        wrong.extend(judged(&format!("driver, {mode}"), &outcome, MOST_OF_A_CHECK));
        if is_refused == (outcome.code == Some(0)) {
            wrong.push(format!("memory: driver, {mode}: exit code {:?}: {}", outcome.code, outcome.said));
        }
    }
    for mode in CCMS {
        let ccm = folder.path().join(mode);
        let done = folder.path().join(format!("done-{mode}"));
        std::fs::write(&ccm, CCM.replace("MODE", mode).replace("DONE", &done.display().to_string()))?;
        std::fs::set_permissions(&ccm, Permissions::from_mode(0o755))?;
        let out = folder.path().join(format!("out-{mode}"));
        let mut command = Command::new(program);
        command.args(["run", "--cluster", "embedded", "--clusters", "1", "--only", "OBS-10,NODE-INIT-01"]);
        command.arg("--binary").arg(&ccm).arg("--out").arg(&out);
        let outcome = one(command, folder.path())?;
        let what = format!("CCM, {mode}");
        wrong.extend(judged(&what, &outcome, MOST_OF_A_RUN));
        // What it has done it has noted: nobody reads a log of such a length.
        let Ok(done) = std::fs::read_to_string(&done) else {
            bail!("{what}: it did nothing:\n{}", outcome.said);
        };
        done.lines().for_each(|line| say(&format!("memory     {what}: {line}")));
    }
    Ok(wrong)
}

/// Runs one to its end.
fn one(mut command: Command, folder: &Path) -> Result<Outcome> {
    let said = folder.join("said");
    let file = std::fs::File::create(&said)?;
    let mut child = command
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("starting the program")?;
    let (began, mut memory) = (Instant::now(), 0);
    let ended = until_it_ends(&mut child, LOOK, LIMIT, |process| memory = memory.max(peak_memory(process)))?;
    let said = String::from_utf8_lossy(&std::fs::read(said)?).chars().take(4000).collect();
    Ok(Outcome {
        code: ended.and_then(|status| status.code()),
        memory: memory >> 10,
        took: began.elapsed(),
        said,
    })
}

/// Shows the figures of one; what is wrong with it.
fn judged(what: &str, outcome: &Outcome, most: u64) -> Option<String> {
    say(&format!("memory     {what}: {} MiB at most, {:.0} s", outcome.memory, outcome.took.as_secs_f64()));
    match outcome.code {
        None => Some(format!("memory: {what}: it did not end")),
        Some(_) if outcome.memory > most => {
            Some(format!("memory: {what}: the harness took {} MiB, more than {most}", outcome.memory))
        }
        Some(_) => None,
    }
}
