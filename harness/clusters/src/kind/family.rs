//! A child process with all of its descendants, which share a process group.

use crate::images::begin;
use futures::future::join_all;
use processes::Process;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::path::Path;
use std::time::Duration;
use tokio::process::Child;
use tokio::task::spawn_blocking;

/// How long children that are left alone may take to end.
const END_LIMIT: Duration = Duration::from_secs(60);

/// The processes of a child that leads its own group. If it is dropped before the child has ended, it kills them, except
/// those that are just creating a container: an engine continues to create it without its client, so they must finish for
/// the container to be found and removed. [`crate::images::settled`] waits for that.
pub(super) struct Family {
    leader: Option<Pid>,
}

impl Family {
    /// The group of a child that was started as its leader.
    pub(super) fn of(child: &Child) -> Family {
        Family { leader: child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) }
    }

    /// The child has ended by itself; nothing is left to kill.
    pub(super) fn has_ended(mut self) {
        self.leader = None;
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        // The leader first: it must not start another child.
        let _ = kill_process(leader, Signal::KILL);
        if !Path::new("/proc/self/stat").exists() {
            let _ = kill_process_group(leader, Signal::KILL);
            return;
        }
        let (makers, others): (Vec<_>, Vec<_>) =
            members(leader).into_iter().partition(Member::makes_container);
        for other in others {
            let _ = kill_process(other.pid, Signal::KILL);
        }
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(begin(async move {
                join_all(makers.iter().map(|maker| {
                    spawn_blocking({
                        let pid = maker.pid;
                        move || wait_for_end(pid)
                    })
                }))
                .await;
            }));
        }
    }
}

/// Waits until a process has ended, whichever process is its parent.
#[cfg(target_os = "linux")]
fn wait_for_end(pid: Pid) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    // If it cannot be opened, it has ended.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let limit = Timespec::try_from(END_LIMIT).ok();
    if poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref()) == Ok(0) {
        tracing::warn!(limit = ?END_LIMIT, "a 'docker run' of kind does not end");
    }
}

/// Other systems have no `/proc`, so there are no processes to wait for.
#[cfg(not(target_os = "linux"))]
fn wait_for_end(_: Pid) {}

/// A living process.
#[derive(Debug)]
struct Member {
    pid: Pid,
    command: Vec<u8>,
}

impl Member {
    /// Whether it is `docker run ...`.
    fn makes_container(&self) -> bool {
        let mut words = self.command.split(|byte| *byte == 0);
        let program = words.next().unwrap_or_default();
        program.rsplit(|byte| *byte == b'/').next() == Some(b"docker") && words.next() == Some(b"run")
    }
}

/// The living processes of a group.
fn members(group: Pid) -> Vec<Member> {
    let group = group.as_raw_nonzero().get();
    let of_group = Process::all().into_iter().filter(|process| process.group == group);
    of_group
        .filter_map(|process| {
            let command = std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok()?;
            Some(Member { pid: Pid::from_raw(process.pid)?, command })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::probe::{ReadError, poll};
    use std::process::Stdio;
    use tokio::process::Command;

    #[tokio::test]
    async fn a_dropped_family_dies_with_its_children_but_not_in_the_middle_of_making_a_container() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let docker = folder.path().join("docker");
        // A copy, because a process has the name with which it was started.
        std::fs::copy("/bin/sh", &docker).expect("a program");
        let made = folder.path().join("made");
        // It continues when 'cat' is killed.
        std::fs::write(folder.path().join("run"), format!("read -r line; touch {}", made.display()))
            .expect("a script");
        let script = format!("cd {}; sleep 1000 & cat | ./docker run", folder.path().display());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).process_group(0).stdin(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().expect("a child");
        let family = Family::of(&child);
        let leader = family.leader.expect("it lives");
        let running = async |seen: &mut String| {
            let members = members(leader);
            *seen = format!("{members:?}");
            Ok::<_, ReadError>(members.iter().any(Member::makes_container).then_some(()))
        };
        poll("the making of a container", END_LIMIT, Duration::from_millis(10), running)
            .await
            .expect("it begins");
        drop(family);
        drop(child);
        crate::images::settled(END_LIMIT).await;
        assert!(made.exists(), "the one that made a container came to its end");
        // On a busy machine a process that was killed is there for a moment.
        let gone = async |seen: &mut String| {
            let members = members(leader);
            *seen = format!("{members:?}");
            Ok::<_, ReadError>(members.is_empty().then_some(()))
        };
        poll("the end of all processes", END_LIMIT, Duration::from_millis(10), gone).await.expect("they end");
    }
}
