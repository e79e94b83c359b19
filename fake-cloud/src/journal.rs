//! The journal: an entry per call in order of arrival, completed in place when the call ends.

use crate::admin::{Entry, Outcome};
use crate::model::Millis;
use std::collections::VecDeque;
use tokio::sync::watch;

/// How many entries are kept; the oldest go first.
pub(crate) const KEPT_ENTRIES: usize = 200_000;

/// The journal.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    next: u64,
    arrivals: watch::Sender<u64>,
}

impl Default for Journal {
    fn default() -> Self {
        Journal { entries: VecDeque::new(), next: 1, arrivals: watch::Sender::new(0) }
    }
}

impl Journal {
    /// Writes a call down as under way; its number.
    pub(crate) fn begin(&mut self, entry: impl FnOnce(u64) -> Entry) -> u64 {
        let seq = self.next;
        self.next += 1;
        if self.entries.len() >= KEPT_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry(seq));
        self.arrivals.send_replace(seq);
        seq
    }

    /// Completes a call's entry.
    pub(crate) fn end(&mut self, seq: u64, now: Millis, outcome: Outcome) {
        if let Some(entry) = self.at(seq) {
            entry.took_ms = Some(now.saturating_sub(entry.at_ms));
            entry.outcome = outcome;
        }
    }

    /// Whose load balancer the call turned out to be about.
    pub(crate) fn concerns(&mut self, seq: u64, owner: String) {
        if let Some(entry) = self.at(seq) {
            entry.owner.get_or_insert(owner);
        }
    }

    fn at(&mut self, seq: u64) -> Option<&mut Entry> {
        let first = self.entries.front()?.seq;
        let offset = usize::try_from(seq.checked_sub(first)?).ok()?;
        self.entries.get_mut(offset)
    }

    /// Entries after `after`, at most `limit`.
    pub(crate) fn after(&self, after: u64, limit: usize) -> Vec<Entry> {
        let first = self.entries.front().map_or(self.next, |entry| entry.seq);
        let skip = usize::try_from((after + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        self.entries.iter().skip(skip).take(limit).cloned().collect()
    }

    /// How many entries have been dropped for want of room.
    pub(crate) fn dropped(&self) -> u64 {
        self.entries.front().map_or(self.next, |entry| entry.seq) - 1
    }

    /// Resolves with each arrival.
    pub(crate) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Op;

    fn entry(seq: u64) -> Entry {
        Entry {
            seq,
            at_ms: 10,
            took_ms: None,
            peer: std::net::IpAddr::from([127, 0, 0, 1]),
            credential: None,
            op: Op::Other,
            write: false,
            resource: None,
            owner: None,
            request: String::new(),
            outcome: Outcome::UnderWay,
        }
    }

    #[test]
    fn numbers_in_order_of_arrival_and_completes_in_place() {
        let mut journal = Journal::default();
        let (first, second) = (journal.begin(entry), journal.begin(entry));
        journal.end(second, 15, Outcome::Answered { status: 200 });
        journal.end(first, 40, Outcome::Abandoned);
        let seen = journal.after(0, 10);
        assert_eq!(seen.iter().map(|e| (e.seq, e.took_ms)).collect::<Vec<_>>(), [(1, Some(30)), (2, Some(5))]);
        assert_eq!(journal.after(1, 10).len(), 1);
        assert_eq!(journal.after(2, 10).len(), 0);
        assert_eq!(journal.dropped(), 0);
    }
}
