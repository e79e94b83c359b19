//! The journal: every call in order of arrival, with its result.

use fake_cloud_driver::{Entry, LbChange, LbParts, Outcome};
use std::collections::VecDeque;
use std::time::Duration;

/// How many entries are kept; the oldest are removed first. Each takes some hundred bytes.
pub const CAPACITY: usize = 200_000;

/// The requested part of the journal is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("journal entries up to {last_dropped} are no longer kept; read on after that")]
pub struct Dropped {
    /// The number of the newest entry that is not kept any more.
    pub last_dropped: u64,
}

/// The journal. Entries do not change after their call has ended.
#[derive(Debug)]
pub struct Journal {
    entries: VecDeque<Entry>,
    /// How many entries were removed, which is also the number of the last one.
    dropped: u64,
    capacity: usize,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal::with_capacity(CAPACITY)
    }
}

impl Journal {
    fn with_capacity(capacity: usize) -> Journal {
        Journal { entries: VecDeque::new(), dropped: 0, capacity }
    }

    /// Adds the entry of a call that has arrived; returns its number.
    pub fn open(&mut self, mut entry: Entry) -> u64 {
        if self.entries.len() >= self.capacity && self.entries.pop_front().is_some() {
            self.dropped += 1;
        }
        let seq = self.last() + 1;
        entry.seq = seq;
        self.entries.push_back(entry);
        seq
    }

    /// Sets the outcome of a call that has not ended yet, for example because a fault makes it hang.
    pub fn mark(&mut self, seq: u64, outcome: Outcome) {
        if let Some(entry) = self.entry(seq) {
            entry.outcome = outcome;
        }
    }

    /// Records the end of a call. Only the first end counts, and a call with an outcome from
    /// [`Journal::mark`] keeps it.
    pub fn close(&mut self, seq: u64, now: Duration, outcome: Outcome) {
        if let Some(entry) = self.entry(seq).filter(|entry| entry.took_ms.is_none()) {
            entry.took_ms = Some(millis(now).saturating_sub(entry.at_ms));
            if entry.outcome == Outcome::UnderWay {
                entry.outcome = outcome;
            }
        }
    }

    /// Records the object that a call has created.
    pub fn created(&mut self, seq: u64, id: String) {
        if let Some(entry) = self.entry(seq) {
            entry.resource = Some(id);
        }
    }

    /// Up to `limit` entries numbered above `after`.
    pub fn after(&self, after: u64, limit: usize) -> Result<Vec<Entry>, Dropped> {
        if after < self.dropped {
            return Err(Dropped { last_dropped: self.dropped });
        }
        let skip = usize::try_from(after - self.dropped).unwrap_or(usize::MAX).min(self.entries.len());
        Ok(self.entries.range(skip..).take(limit).cloned().collect())
    }

    /// One entry, as long as it is kept.
    pub fn get(&self, seq: u64) -> Option<&Entry> {
        let index = usize::try_from(seq.checked_sub(self.dropped + 1)?).ok()?;
        self.entries.get(index)
    }

    /// Records the owner of a call's load balancer, if it becomes known after the call's arrival.
    pub fn owned(&mut self, seq: u64, owner: String) {
        if let Some(entry) = self.entry(seq) {
            entry.owner = Some(owner);
        }
    }

    /// Records how a call changed the load balancers that it is about, if it changed them.
    pub fn changed(&mut self, seq: u64, before: LbParts, after: LbParts) {
        if let Some(entry) = self.entry(seq).filter(|_| before != after) {
            entry.change = Some(Box::new(LbChange { before, after }));
        }
    }

    /// The number of the newest entry; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.dropped + self.entries.len() as u64
    }

    fn entry(&mut self, seq: u64) -> Option<&mut Entry> {
        let index = usize::try_from(seq.checked_sub(self.dropped + 1)?).ok()?;
        self.entries.get_mut(index)
    }
}

/// A time in the journal's form.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fake_cloud_driver::Op;
    use std::net::{IpAddr, Ipv4Addr};

    fn entry(at_ms: u64) -> Entry {
        Entry {
            seq: 0,
            at_ms,
            took_ms: None,
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            credential: None,
            op: Op::LbGet,
            write: false,
            resource: None,
            owner: None,
            request: "GET /".to_owned(),
            user_agent: None,
            outcome: Outcome::UnderWay,
            unknown: None,
            change: None,
        }
    }

    fn seqs(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn entries_are_numbered_from_one_and_completed_in_place() {
        let mut journal = Journal::default();
        assert_eq!((journal.last(), journal.open(entry(5)), journal.open(entry(6))), (0, 1, 2));
        journal.close(1, Duration::from_millis(12), Outcome::Answered { status: 200 });
        let all = journal.after(0, usize::MAX).expect("kept");
        assert_eq!(seqs(&all), [1, 2]);
        assert_eq!((all[0].took_ms, &all[0].outcome), (Some(7), &Outcome::Answered { status: 200 }));
        assert_eq!((all[1].took_ms, &all[1].outcome), (None, &Outcome::UnderWay));
        assert_eq!(seqs(&journal.after(1, 1).expect("kept")), [2]);
        assert_eq!(journal.after(u64::MAX, 1).expect("none yet"), []);
    }

    #[test]
    fn a_marked_outcome_stays() {
        let mut journal = Journal::default();
        let seq = journal.open(entry(0));
        journal.mark(seq, Outcome::Faulted { status: None, fault: 3 });
        journal.close(seq, Duration::from_millis(9), Outcome::Abandoned);
        let all = journal.after(0, usize::MAX).expect("kept");
        assert_eq!(all[0].outcome, Outcome::Faulted { status: None, fault: 3 });
        assert_eq!(all[0].took_ms, Some(9));
    }

    #[test]
    fn dropped_entries_are_reported() {
        let mut journal = Journal::with_capacity(2);
        for at in 0..5 {
            journal.open(entry(at));
        }
        journal.close(1, Duration::ZERO, Outcome::Abandoned);
        assert_eq!(journal.after(2, 10), Err(Dropped { last_dropped: 3 }));
        assert_eq!(seqs(&journal.after(3, 10).expect("kept")), [4, 5]);
    }
}
