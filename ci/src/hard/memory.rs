//! Drivers and CCMs that write without an end, and clients that never read: the most memory that they make
//! the harness use.

use super::watched::{peak_memory, until_it_ends};
use crate::process::say;
use anyhow::{Context, Result, bail};
use std::fs::Permissions;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A driver that is hostile in the way of its first argument.
const DRIVER: &str = include_str!("memory/driver.py");
/// The ways, and whether such a driver is rejected.
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
/// A CCM that is hostile in the way that replaces `MODE`, and reports what it has done to the port that
/// replaces `REPORTS_TO`.
const CCM: &str = include_str!("memory/ccm.py");
const CCMS: [&str; 2] = ["writes", "unread"];
/// The most memory in MiB for a check of a driver, and for a run with a hostile CCM, as in docs/reliability.md.
const MOST_OF_A_CHECK: u64 = 192;
const MOST_OF_A_RUN: u64 = 384;
/// How often the memory of a process is read.
const LOOK: Duration = Duration::from_millis(50);
/// After this time a program is considered stuck.
const LIMIT: Duration = Duration::from_secs(300);

/// The result for one of them.
struct Outcome {
    code: Option<i32>,
    memory: u64,
    took: Duration,
    said: String,
}

/// A measurement.
struct Hostile {
    /// Its name.
    what: String,
    /// The program that is measured.
    command: Command,
    /// The most memory that it may use, in MiB.
    most: u64,
    /// Whether the hostile program has to be rejected; `None` if that does not matter.
    is_refused: Option<bool>,
    /// The listener to which it reports what it has done, if it does.
    done: Option<TcpListener>,
}

/// Measures all of them in parallel: each is a separate process, and most of them wait.
pub(super) fn measure(program: &Path) -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let mut all = drivers(program, folder.path())?;
    all.extend(ccms(program, folder.path())?);
    let outcomes = std::thread::scope(|scope| {
        let place = folder.path();
        let running: Vec<_> = all
            .into_iter()
            .enumerate()
            .map(|(at, one)| scope.spawn(move || measured(one, place, at)))
            .collect();
        let ended =
            running.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("a measurement panicked")));
        ended.collect::<Result<Vec<Vec<String>>>>()
    })?;
    Ok(outcomes.concat())
}

fn drivers(program: &Path, folder: &Path) -> Result<Vec<Hostile>> {
    let driver = folder.join("driver.py");
    std::fs::write(&driver, DRIVER)?;
    let one = |(mode, is_refused): (&str, bool)| {
        let mut command = Command::new(program);
        command.args(["driver", "check", "--command", "python3"]).arg(&driver);
        command.args([mode, "${DRIVER_LISTEN}", "${DRIVER_TOKEN_FILE}"]);
        let what = format!("driver, {mode}");
        Hostile { what, command, most: MOST_OF_A_CHECK, is_refused: Some(is_refused), done: None }
    };
    Ok(DRIVERS.map(one).into())
}

fn ccms(program: &Path, folder: &Path) -> Result<Vec<Hostile>> {
    let mut all = Vec::new();
    for mode in CCMS {
        let (ccm, done) = (folder.join(mode), TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
        let port = done.local_addr()?.port().to_string();
        std::fs::write(&ccm, CCM.replace("MODE", mode).replace("REPORTS_TO", &port))?;
        std::fs::set_permissions(&ccm, Permissions::from_mode(0o755))?;
        let mut command = Command::new(program);
        command.args(["run", "--cluster", "embedded", "--clusters", "1", "--only", "OBS-10,NODE-INIT-01"]);
        command.arg("--binary").arg(&ccm).arg("--out").arg(folder.join(format!("out-{mode}")));
        let what = format!("CCM, {mode}");
        all.push(Hostile { what, command, most: MOST_OF_A_RUN, is_refused: None, done: Some(done) });
    }
    Ok(all)
}

/// Runs one and prints its figures; returns its faults.
fn measured(hostile: Hostile, folder: &Path, at: usize) -> Result<Vec<String>> {
    let Hostile { what, command, most, is_refused, done } = hostile;
    let outcome = one(command, folder, at)?;
    let mut wrong = Vec::from_iter(judged(&what, &outcome, most));
    if is_refused.is_some_and(|is_refused| is_refused == (outcome.code == Some(0))) {
        wrong.push(format!("memory: {what}: exit code {:?}: {}", outcome.code, outcome.said));
    }
    if let Some(done) = done {
        // It reports that with connections, which wait to be accepted: its log would be too long.
        let lines = reported(&done)?;
        if lines.is_empty() {
            bail!("{what}: it did nothing:\n{}", outcome.said);
        }
        lines.iter().for_each(|line| say(&format!("memory     {what}: {line}")));
    }
    Ok(wrong)
}

/// The lines that a CCM has sent, each over a separate connection.
fn reported(done: &TcpListener) -> Result<Vec<String>> {
    done.set_nonblocking(true)?;
    let mut lines = Vec::new();
    while let Ok((mut connection, _)) = done.accept() {
        let mut text = String::new();
        connection.set_nonblocking(false)?;
        connection.read_to_string(&mut text)?;
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok(lines)
}

/// Runs one to its end.
fn one(mut command: Command, folder: &Path, at: usize) -> Result<Outcome> {
    let said = folder.join(format!("said-{at}"));
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

/// Prints the figures of one; returns its fault.
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
