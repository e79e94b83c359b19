//! The owner of something that outlives a process, in a form from which any process can tell whether the owner is still
//! alive.

use processes::Process;
use rustix::process::{Pid, geteuid, test_kill_process};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// A process that owns something. As text it is a list of `key=value`, short enough for a label of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Its user id.
    pub user: u32,
    /// The machine: its name, and a digest of its id if it has one.
    pub host: String,
    /// The kernel's id of this boot of the machine.
    boot: String,
    /// The process namespace in which `pid` is valid.
    namespace: String,
    /// Its process id.
    pub pid: i32,
    /// The start time of the process, in ticks since the boot: process ids are reused.
    start: u64,
}

/// Whether an owner is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is alive; a description of it.
    Lives(String),
    /// It is not alive.
    Gone,
    /// Unknown, and why.
    Unknown(String),
}

impl Owner {
    /// This process.
    pub fn here() -> Owner {
        let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let name = line("/proc/sys/kernel/hostname");
        let id = line("/etc/machine-id");
        let digest = Sha256::digest(id.as_bytes());
        let mark: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Owner {
            user: geteuid().as_raw(),
            host: if id.is_empty() { name } else { format!("{name}.{mark}") },
            boot: line("/proc/sys/kernel/random/boot_id"),
            namespace: std::fs::read_link("/proc/self/ns/pid")
                .map(|link| link.display().to_string())
                .unwrap_or_default(),
            pid,
            start: started(pid).unwrap_or(0),
        }
    }

    /// Whether this process is alive, as far as can be determined here.
    pub fn liveness(&self) -> Liveness {
        self.seen_from(&Owner::here(), |pid| match started(pid) {
            Some(start) => ProcessState::Started(start),
            // If /proc hides other users' processes, their existence can still be checked.
            None => match Pid::from_raw(pid).map(test_kill_process) {
                Some(Ok(()) | Err(rustix::io::Errno::PERM)) => ProcessState::Hidden,
                _ => ProcessState::Nothing,
            },
        })
    }

    fn seen_from(&self, here: &Owner, look: impl FnOnce(i32) -> ProcessState) -> Liveness {
        if self.boot == here.boot && self.namespace == here.namespace {
            return match look(self.pid) {
                ProcessState::Started(start) if start == self.start => Liveness::Lives(self.described()),
                ProcessState::Hidden => Liveness::Lives(self.described()),
                ProcessState::Started(_) | ProcessState::Nothing => Liveness::Gone,
            };
        }
        if self.boot == here.boot {
            return Liveness::Unknown(format!("{}, in another container than this one", self.described()));
        }
        // The machine was rebooted since; another machine of the same name has another id.
        if self.host == here.host { Liveness::Gone } else { Liveness::Unknown(self.described()) }
    }

    /// A description.
    fn described(&self) -> String {
        format!("process {} of user {} on {}", self.pid, self.user, self.host)
    }
}

/// What is known of a process.
enum ProcessState {
    Started(u64),
    Hidden,
    Nothing,
}

/// The start time of a living process, in ticks.
fn started(pid: i32) -> Option<u64> {
    Process::of(pid).map(|process| process.start)
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { user, host, boot, namespace, pid, start } = self;
        write!(f, "user={user} host={host} boot={boot} namespace={namespace} pid={pid} start={start}")
    }
}

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Owner, String> {
        let value = |key: &str| {
            let found = text.split_whitespace().find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
            found.map(str::to_owned).ok_or_else(|| format!("'{text}' does not contain {key}"))
        };
        let wrong = |key: &str| format!("'{text}': {key} is not a number");
        Ok(Owner {
            user: value("user")?.parse().map_err(|_| wrong("user"))?,
            host: value("host")?,
            boot: value("boot")?,
            namespace: value("namespace")?,
            pid: value("pid")?.parse().map_err(|_| wrong("pid"))?,
            start: value("start")?.parse().map_err(|_| wrong("start"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_is_read_back() {
        let here = Owner::here();
        assert_eq!(here.to_string().parse(), Ok(here.clone()));
        assert!(matches!(here.liveness(), Liveness::Lives(_)));
        assert!("pid=1".parse::<Owner>().is_err());
    }

    #[test]
    fn a_process_that_ended_is_gone_though_its_number_was_given_again() {
        let other = Owner { start: Owner::here().start + 1, ..Owner::here() };
        assert_eq!(other.liveness(), Liveness::Gone);
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = i32::try_from(child.id()).expect("a number of a process");
        child.wait().expect("it ends");
        assert_eq!(Owner { pid, ..Owner::here() }.liveness(), Liveness::Gone);
    }

    #[test]
    fn an_invisible_process_never_counts_as_gone() {
        let here = Owner::here();
        let unseen = |owner: Owner| owner.seen_from(&here, |_| ProcessState::Nothing);
        let elsewhere = Owner { host: "other.0".to_owned(), boot: "b".to_owned(), ..here.clone() };
        assert!(matches!(unseen(elsewhere), Liveness::Unknown(_)));
        let in_other_namespace = Owner { namespace: "pid:[1]".to_owned(), ..here.clone() };
        assert!(matches!(unseen(in_other_namespace), Liveness::Unknown(_)));
        let hidden = here.seen_from(&here, |_| ProcessState::Hidden);
        assert!(matches!(hidden, Liveness::Lives(_)));
        // The machine was rebooted.
        assert_eq!(unseen(Owner { boot: "b".to_owned(), ..here.clone() }), Liveness::Gone);
    }
}
