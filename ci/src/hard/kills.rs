//! Runs that are ended by a signal at any moment: after how many seconds nothing of them is left.

use crate::process::say;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The signals, in turn, and the seconds within which nothing may be left.
const SIGNALS: [(&str, f64); 4] = [("KILL", 15.0), ("TERM", 10.0), ("INT", 10.0), ("HUP", 10.0)];
/// The kind of cluster of the ended run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum On {
    /// The embedded cluster
    Embedded,
    /// kind; no other program may create containers, networks or volumes during that time
    Kind,
}

impl On {
    /// The value for `--cluster`.
    pub(super) fn word(self) -> &'static str {
        match self {
            On::Embedded => "embedded",
            On::Kind => "kind",
        }
    }

    /// The latest moment of a signal, in milliseconds: by then every stage of a run has begun.
    fn latest(self) -> u64 {
        match self {
            On::Embedded => 15_000,
            On::Kind => 75_000,
        }
    }

    /// The Docker resources that a run may leave.
    fn things(self) -> Result<BTreeSet<String>> {
        if self == On::Embedded {
            return Ok(BTreeSet::new());
        }
        let mut things = BTreeSet::new();
        for (kind, list, name) in [
            ("container", &["ps", "--all"][..], "{{.Names}}"),
            ("network", &["network", "ls"], "{{.Name}}"),
            ("volume", &["volume", "ls"], "{{.Name}}"),
        ] {
            let listed = Command::new("docker").args(list).args(["--format", name]).output()?;
            anyhow::ensure!(listed.status.success(), "docker: {}", String::from_utf8_lossy(&listed.stderr));
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            things.extend(listed.lines().map(|name| format!("{kind} {name}")));
        }
        Ok(things)
    }
}

pub(super) fn measure(program: &Path, on: On, count: u32, seed: u64) -> Result<Vec<String>> {
    let (mut wrong, mut worst, mut leaving) = (Vec::new(), [0.0_f64; 4], 0);
    let mut numbers = seed.max(1);
    for at in 0..count {
        numbers ^= numbers << 13;
        numbers ^= numbers >> 7;
        numbers ^= numbers << 17;
        let which = at as usize % SIGNALS.len();
        let (signal, limit) = SIGNALS[which];
        let delay = Duration::from_millis(numbers % on.latest());
        let (took, left) = one(program, on, signal, delay)?;
        worst[which] = worst[which].max(took);
        leaving += u32::from(!left.is_empty());
        if took > limit || !left.is_empty() {
            wrong.push(format!("SIG{signal} after {delay:?}: {took:.1} s, left: {}", left.join(", ")));
        }
    }
    for ((signal, limit), worst) in SIGNALS.iter().zip(worst) {
        say(&format!(
            "kills      SIG{signal:<4} nothing left after {worst:.1} s at most (promised: {limit} s)"
        ));
    }
    say(&format!("kills      {count} runs on {} clusters, {leaving} left something", on.word()));
    Ok(wrong)
}

/// The seconds from the signal until no process of the run can write any more, and what is left then.
#[expect(clippy::disallowed_methods, reason = "moments are what is measured here")]
fn one(program: &Path, on: On, signal: &str, delay: Duration) -> Result<(f64, Vec<String>)> {
    let before = on.things()?;
    let folder = tempfile::tempdir()?;
    // If it were started by 'nohup', a run would ignore SIGHUP, and should.
    let mut child = Command::new("env")
        .arg("--default-signal=HUP")
        .arg(program)
        .args(["run", "--cluster", on.word(), "--out"])
        .arg(folder.path().join("out"))
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut said = child.stderr.take().context("a child without its pipe")?;
    // A process whose output is not read would block.
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = said.read_to_end(&mut text);
        text
    });
    std::thread::sleep(delay);
    Command::new("kill").args(["-s", signal, &child.id().to_string()]).status()?;
    let began = Instant::now();
    child.wait()?;
    // The reaper has the run's standard error as well.
    let _ = reading.join();
    let took = began.elapsed().as_secs_f64();
    let mut left = left_in(folder.path())?;
    left.extend(on.things()?.difference(&before).cloned());
    Ok((took, left))
}

/// The files that a run has left in its folder for temporary files, without its results, and the processes
/// that name it or were started with it.
pub(super) fn left_in(folder: &Path) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "out" {
            left.push(name);
        }
    }
    let (named, given) = (format!("{}/", folder.display()), format!("TMPDIR={}", folder.display()));
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let inherits = read("environ").split(|byte| *byte == 0).any(|one| one == given.as_bytes());
        if line.contains(&named) || inherits {
            left.push(line);
        }
    }
    Ok(left)
}
