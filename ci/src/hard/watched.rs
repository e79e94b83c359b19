//! Programs that are watched while they run.

use anyhow::Result;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Calls `look` for a program again and again until it ends; `None`: it ran for longer than `limit`, and was
/// killed.
///
/// # Errors
/// It cannot be waited for.
#[expect(clippy::disallowed_methods, reason = "nothing tells what a process holds but a look at it")]
pub(super) fn until_it_ends(
    child: &mut Child,
    every: Duration,
    limit: Duration,
    mut look: impl FnMut(u32),
) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        look(child.id());
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(every);
    }
}

/// The peak memory of a process so far, in KiB; 0 if it is gone.
pub(super) fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
