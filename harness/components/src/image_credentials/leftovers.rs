//! Processes that a vendor's program has started and left behind. Everything that it starts inherits its environment,
//! however detached it is; a mark there distinguishes them from all other processes on this machine.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable that marks a program and everything that it starts.
pub(crate) const MARK: &str = "CCM_CONFORMANCE_PLUGIN";
/// Number of rounds after which a program that starts processes faster than they can be ended is given up.
const ROUNDS: usize = 200;

/// When dropped, ends the group of a program and all processes with its mark.
#[derive(Debug)]
pub(crate) struct ProcessGroupGuard {
    pub(crate) group: Option<Pid>,
    pub(crate) mark: String,
}

impl ProcessGroupGuard {
    /// The processes with its mark.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        marked(&self.mark)
    }

    /// Freezes the group and all processes with its mark; returns whether there was one.
    pub(crate) fn freeze(&self) -> bool {
        let group = self.group.map(|group| kill_process_group(group, Signal::STOP));
        let marked = self.processes().into_iter().map(|one| kill_process(one, Signal::STOP));
        group.into_iter().chain(marked).fold(false, |any, one| any | one.is_ok())
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // It may have already ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        for _ in 0..ROUNDS {
            let left = marked(&self.mark);
            if left.is_empty() {
                return;
            }
            for one in left {
                let _ = kill_process(one, Signal::KILL);
            }
        }
        tracing::warn!(
            mark = self.mark,
            "processes of a program remain: it starts them faster than they can be ended"
        );
    }
}

/// Processes with that mark.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let has_it = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| has_it(*pid)).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::probe::poll;
    use std::time::Duration;

    #[tokio::test]
    async fn processes_that_left_their_group_are_ended_too() {
        let mark = format!("test-{}", std::process::id());
        let script = "setsid sleep 60 </dev/null >/dev/null 2>&1 & wait";
        let mut shell = tokio::process::Command::new("sh");
        let child = shell.args(["-c", script]).env(MARK, &mark).process_group(0).kill_on_drop(true).spawn();
        let child = child.expect("a shell");
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let count = |wanted: fn(usize) -> bool| {
            let mark = mark.clone();
            async move |seen: &mut String| {
                let found = marked(&mark).len();
                *seen = format!("{found} processes");
                Ok(wanted(found).then_some(()))
            }
        };
        let (limit, every) = (Duration::from_secs(10), Duration::from_millis(10));
        poll("the shell has started another", limit, every, count(|found| found == 2)).await.expect("two");
        drop(ProcessGroupGuard { group, mark: mark.clone() });
        poll("both are gone", limit, every, count(|found| found == 0)).await.expect("none");
    }
}
