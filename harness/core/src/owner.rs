//! Who made something that outlives a process, in a form that everybody who finds it can judge: does the maker still live?

use processes::Process;
use rustix::process::{Pid, geteuid, test_kill_process};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The process that made something. As text it is a list of `key=value`, short enough for a label of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Number of the user.
    pub user: u32,
    /// The machine: its name, and a digest of its id where it has one.
    pub host: String,
    /// The kernel's id of this start of the machine.
    boot: String,
    /// The process namespace, in which alone `pid` means something.
    namespace: String,
    /// Number of the process.
    pub pid: i32,
    /// When the process started, in ticks since the machine did: numbers of processes are given again.
    start: u64,
}

/// Whether the owner of something lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It does; who it is.
    Lives(String),
    /// It does not.
    Gone,
    /// That cannot be told from here; why.
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

    /// Whether this process lives, as far as can be told from here.
    pub fn liveness(&self) -> Liveness {
        self.seen_from(&Owner::here(), |pid| match started(pid) {
            Some(start) => Seen::Started(start),
            // Where /proc hides the processes of others they still can be asked for.
            None => match Pid::from_raw(pid).map(test_kill_process) {
                Some(Ok(()) | Err(rustix::io::Errno::PERM)) => Seen::Hidden,
                _ => Seen::Nothing,
            },
        })
    }

    fn seen_from(&self, here: &Owner, look: impl FnOnce(i32) -> Seen) -> Liveness {
        if self.boot == here.boot && self.namespace == here.namespace {
            return match look(self.pid) {
                Seen::Started(start) if start == self.start => Liveness::Lives(self.told()),
                Seen::Hidden => Liveness::Lives(self.told()),
                Seen::Started(_) | Seen::Nothing => Liveness::Gone,
            };
        }
        if self.boot == here.boot {
            return Liveness::Unknown(format!("{}, in another container than this one", self.told()));
        }
        // The machine was started anew since; another of the same name has another id.
        if self.host == here.host { Liveness::Gone } else { Liveness::Unknown(self.told()) }
    }

    /// In words.
    fn told(&self) -> String {
        format!("process {} of user {} on {}", self.pid, self.user, self.host)
    }
}

/// What is seen of a process.
enum Seen {
    Started(u64),
    Hidden,
    Nothing,
}

/// When a living process started, in ticks.
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
            found.map(str::to_owned).ok_or_else(|| format!("'{text}' names no {key}"))
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
    fn what_cannot_be_seen_from_here_is_never_taken_for_gone() {
        let here = Owner::here();
        let unseen = |owner: Owner| owner.seen_from(&here, |_| Seen::Nothing);
        let elsewhere = Owner { host: "other.0".to_owned(), boot: "b".to_owned(), ..here.clone() };
        assert!(matches!(unseen(elsewhere), Liveness::Unknown(_)));
        let beside = Owner { namespace: "pid:[1]".to_owned(), ..here.clone() };
        assert!(matches!(unseen(beside), Liveness::Unknown(_)));
        let hidden = here.seen_from(&here, |_| Seen::Hidden);
        assert!(matches!(hidden, Liveness::Lives(_)));
        // The machine was started anew.
        assert_eq!(unseen(Owner { boot: "b".to_owned(), ..here.clone() }), Liveness::Gone);
    }
}
