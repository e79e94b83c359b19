//! The processes of this machine, as far as `/proc` shows them. Three fields of one file are read, for which the crate
//! procfs and its dependencies would be much.
//! Format: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>.

use std::collections::{BTreeMap, BTreeSet};

/// A running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    /// Its parent's process id.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its start time, in ticks since the boot: process ids are reused.
    pub start: u64,
    /// The processor time of the process and of the children that it has waited for, in ticks.
    pub used: u64,
}

impl Process {
    /// The process with that id; `None` if there is none, it is a zombie, or it is hidden.
    pub fn of(pid: i32) -> Option<Process> {
        let read = Process::read(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
        read.filter(|(_, ended)| !ended).map(|(one, _)| one)
    }

    /// All visible processes.
    pub fn all() -> Vec<Process> {
        Process::living_and_ended().0
    }

    /// All visible processes, including zombies.
    pub fn living_and_ended() -> (Vec<Process>, Vec<Process>) {
        Process::living_and_ended_but(&BTreeSet::new())
    }

    /// All visible processes without these ids.
    fn living_and_ended_but(left_out: &BTreeSet<i32>) -> (Vec<Process>, Vec<Process>) {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let (mut living, mut ended) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if left_out.contains(&pid) {
                continue;
            }
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            match Process::read(pid, &stat) {
                Some((one, false)) => living.push(one),
                Some((one, true)) => ended.push(one),
                None => {}
            }
        }
        (living, ended)
    }

    /// A process, and whether it is a zombie. A program's name may contain spaces and parentheses.
    fn read(pid: i32, stat: &str) -> Option<(Process, bool)> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ended = matches!(*fields.first()?, "Z" | "X");
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let process = Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: number(19)?,
            used: (11..=14).try_fold(0_u64, |sum, at| Some(sum.saturating_add(number(at)?)))?,
        };
        Some((process, ended))
    }

    /// Its own memory without that of files, in bytes; shared memory counts for each process.
    pub fn memory(self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let kibibytes = status.lines().filter_map(|line| {
            let (name, amount) = line.split_once(':')?;
            let counts = matches!(name, "RssAnon" | "RssShmem" | "VmSwap");
            amount.trim().strip_suffix(" kB")?.parse::<u64>().ok().filter(|_| counts)
        });
        kibibytes.sum::<u64>() << 10
    }
}

/// A process with everything that it has started, however detached, if it was observed in time.
#[derive(Debug)]
pub struct Offspring {
    root: i32,
    /// Start time by process id.
    known: BTreeMap<i32, u64>,
    /// Ids of unrelated processes: a machine has hundreds of them, and reading all of them each time is expensive.
    others: BTreeSet<i32>,
    /// How many more updates skip these.
    passing: u32,
}

/// After how many updates the ids of unrelated processes are read again, as ids are reused.
const PASSING: u32 = 9;

impl Offspring {
    /// Starts with that process, which may have ended.
    pub fn of(root: i32) -> Offspring {
        Offspring { root, known: BTreeMap::new(), others: BTreeSet::new(), passing: 0 }
    }

    /// Updates the list of processes.
    pub fn look(&mut self) {
        match self.passing.checked_sub(1) {
            Some(left) => self.passing = left,
            None => {
                self.others.clear();
                self.passing = PASSING;
            }
        }
        let (seen, _) = Process::living_and_ended_but(&self.others);
        self.take_in(&seen);
        self.note_others(&seen);
    }

    /// A process whose parent is unrelated is unrelated too. If its parent was started while the others were read, that
    /// is not known yet.
    fn note_others(&mut self, seen: &[Process]) {
        let ours = |pid: i32| pid == self.root || self.known.contains_key(&pid);
        let there: BTreeSet<i32> = seen.iter().map(|one| one.pid).chain([0]).collect();
        let known_parent = |one: &&Process| there.contains(&one.parent) || self.others.contains(&one.parent);
        let new: Vec<i32> =
            seen.iter().filter(known_parent).map(|one| one.pid).filter(|pid| !ours(*pid)).collect();
        self.others.extend(new);
    }

    /// Updates it from a list of all processes; returns the current ones.
    pub fn among(&mut self, all: &[Process]) -> Vec<Process> {
        self.take_in(all);
        all.iter()
            .filter(|one| one.pid == self.root || self.known.get(&one.pid) == Some(&one.start))
            .copied()
            .collect()
    }

    fn take_in(&mut self, all: &[Process]) {
        self.known.retain(|pid, start| all.iter().any(|one| one.pid == *pid && one.start == *start));
        // A parent may come after its child.
        loop {
            let before = self.known.len();
            for one in all {
                if one.parent == self.root || self.known.contains_key(&one.parent) {
                    self.known.entry(one.pid).or_insert(one.start);
                }
            }
            if self.known.len() == before {
                return;
            }
        }
    }

    /// The current processes, except this one.
    pub fn all(&self) -> Vec<Process> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let there = self.known.iter().filter_map(|(pid, start)| Some((Process::of(*pid)?, *start)));
        there.filter(|(one, start)| one.start == *start && one.pid != own).map(|(one, _)| one).collect()
    }
}

/// Descendants of processes that this process has started. A process whose parent has ended becomes a child of this
/// process, if it asked for that (`PR_SET_CHILD_SUBREAPER`), and stays a zombie after its end until it is waited for.
#[derive(Debug, Default)]
pub struct Descendants {
    /// Start time by process id.
    known: BTreeMap<i32, u64>,
}

impl Descendants {
    /// Adds the processes of a program.
    pub fn note(&mut self, of: &Offspring) {
        self.known.extend(&of.known);
    }

    /// Waits for those that have ended as children of this process, and forgets those that are gone. Processes that this
    /// process has started itself are waited for elsewhere.
    pub fn bury(&mut self, living: &[Process], ended: &[Process]) {
        let own = rustix::process::getpid();
        for one in self.ended_under(own.as_raw_nonzero().get(), ended) {
            let pid = rustix::process::Pid::from_raw(one.pid);
            // Nothing else waits for it; otherwise it is already gone, which is fine.
            let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG);
        }
        let there = |pid: &i32, start: &u64| {
            living.iter().chain(ended).any(|one| one.pid == *pid && one.start == *start)
        };
        self.known.retain(|pid, start| there(pid, start));
    }

    fn ended_under(&self, parent: i32, ended: &[Process]) -> Vec<Process> {
        let mine = |one: &&Process| one.parent == parent && self.known.get(&one.pid) == Some(&one.start);
        ended.iter().filter(mine).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_program_is_called() {
        let stat = |state: &str| format!("12 (a) b) {state} 1 77 77 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 4711 0");
        let expected = Process { pid: 12, parent: 1, group: 77, start: 4711, used: 18 };
        assert_eq!(Process::read(12, &stat("S")), Some((expected, false)));
        assert_eq!(Process::read(12, &stat("Z")), Some((expected, true)));
        assert_eq!(Process::read(12, "nonsense"), None);
    }

    #[test]
    fn a_seen_process_is_still_known_when_its_parent_is_gone() {
        let one = |pid, parent| Process { pid, parent, group: 1, start: 5, used: 0 };
        let mut offspring = Offspring::of(10);
        offspring.take_in(&[one(13, 12), one(12, 11), one(11, 10), one(10, 1), one(20, 1)]);
        assert_eq!(offspring.known.keys().copied().collect::<Vec<_>>(), [11, 12, 13]);
        // Its parents ended, and it has started another process.
        offspring.take_in(&[one(14, 13), one(13, 1), one(20, 1)]);
        assert_eq!(offspring.known.keys().copied().collect::<Vec<_>>(), [13, 14]);
        // The id was reused.
        let other = Process { start: 9, ..one(13, 1) };
        offspring.take_in(&[other]);
        assert!(offspring.known.is_empty());
    }

    #[test]
    fn others_are_passed_by_unless_their_parent_is_unknown() {
        let one = |pid, parent| Process { pid, parent, group: 1, start: 5, used: 0 };
        let mut offspring = Offspring::of(10);
        // The parent of 31 came after its own position had been read.
        let seen = [one(1, 0), one(10, 1), one(11, 10), one(20, 1), one(21, 20), one(31, 30)];
        offspring.take_in(&seen);
        offspring.note_others(&seen);
        assert_eq!(offspring.others.iter().copied().collect::<Vec<_>>(), [1, 20, 21]);
        let (seen, _) = Process::living_and_ended_but(&offspring.others);
        assert!(seen.iter().all(|one| one.pid != 1), "{seen:?}");
    }

    #[test]
    fn only_descendants_without_another_waiter_are_reaped() {
        let one = |pid, parent| Process { pid, parent, group: 1, start: 5, used: 0 };
        let mut offspring = Offspring::of(10);
        offspring.take_in(&[one(10, 1), one(11, 10), one(12, 11)]);
        let mut all = Descendants::default();
        all.note(&offspring);
        // 10 was started by this process (1); 11 ended below it and 12 is running; 20 is unrelated.
        let ended = [one(10, 1), one(11, 1), one(12, 11), one(20, 1), Process { start: 9, ..one(12, 1) }];
        assert_eq!(all.ended_under(1, &ended), [one(11, 1)]);
        all.bury(&[one(12, 11)], &[]);
        assert_eq!(all.known.keys().copied().collect::<Vec<_>>(), [12]);
    }
}
