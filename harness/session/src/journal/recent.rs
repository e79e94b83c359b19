//! The part of the journal that a mirror keeps.

use harness_clouds::{Entry, Outcome};
use harness_core::probe::ReadError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of entries that are always kept; about 400 bytes each.
const ALWAYS: usize = 10_000;
/// Number of entries that are kept for checks that began before them; as many as the fake cloud keeps.
const AT_MOST: usize = 200_000;

/// The last entries of the journal, without gaps.
#[derive(Default)]
pub(super) struct RecentEntries {
    entries: VecDeque<Entry>,
    /// The number of dropped entries, which is also the number of the last of them.
    gone: u64,
    /// Numbers of the entries of calls in progress.
    under_way: BTreeSet<u64>,
    /// The start positions of running checks, and how many checks started at each.
    beginnings: BTreeMap<u64, usize>,
}

/// Whether an entry is final.
pub(super) fn is_over(entry: &Entry) -> bool {
    entry.outcome != Outcome::UnderWay
}

impl RecentEntries {
    /// Empty, with `from` as the position before the first entry.
    pub(super) fn since(from: u64) -> RecentEntries {
        RecentEntries { gone: from, ..RecentEntries::default() }
    }

    /// Number of the last dropped entry.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }

    /// Number of the last entry, 0 if there was none.
    pub(super) fn last(&self) -> u64 {
        self.gone + self.entries.len() as u64
    }

    /// All kept entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The position from which to read on: before the first call in progress, otherwise after the last entry; and whether
    /// a call is in progress.
    pub(super) fn read_on(&self) -> (u64, bool) {
        match self.under_way.first() {
            Some(first) => (first - 1, true),
            None => (self.last(), false),
        }
    }

    /// The entries after `mark`.
    ///
    /// # Errors
    /// Some of them are no longer kept.
    pub(super) fn after(&self, mark: u64) -> Result<impl DoubleEndedIterator<Item = &Entry>, ReadError> {
        let Some(skip) = mark.checked_sub(self.gone) else {
            let text = format!(
                "calls #{} to #{} to the cloud are no longer in memory: {} calls followed, {ALWAYS} are always kept \
                 and {AT_MOST} for a check that began before them; events.jsonl contains all of them",
                mark + 1,
                self.gone,
                self.entries.len(),
            );
            return Err(ReadError { text, fatal: true });
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.entries.len());
        Ok(self.entries.range(skip..))
    }

    /// Adds an entry, which is known or the next one; returns whether anything is new.
    pub(super) fn take(&mut self, entry: Entry) -> bool {
        let (seq, over) = (entry.seq, is_over(&entry));
        let Some(at) = seq.checked_sub(self.gone + 1).and_then(|at| usize::try_from(at).ok()) else {
            return false;
        };
        match self.entries.get_mut(at) {
            // An entry that has ended stays ended: an answer may be older than the last one.
            Some(known) if *known == entry || is_over(known) => return false,
            Some(known) => *known = entry,
            None => self.entries.push_back(entry),
        }
        if over {
            self.under_way.remove(&seq)
        } else {
            self.under_way.insert(seq)
        };
        self.let_go();
        true
    }

    /// Registers a check that starts reading here.
    pub(super) fn begin(&mut self) -> u64 {
        let here = self.last();
        *self.beginnings.entry(here).or_default() += 1;
        here
    }

    /// Unregisters a check that started here.
    pub(super) fn end(&mut self, beginning: u64) {
        if let Some(count) = self.beginnings.get_mut(&beginning) {
            *count -= 1;
            if *count == 0 {
                self.beginnings.remove(&beginning);
            }
        }
        self.let_go();
    }

    fn let_go(&mut self) {
        let needed = self.beginnings.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        while self.entries.len() > AT_MOST || (self.entries.len() > ALWAYS && self.gone < needed) {
            let Some(entry) = self.entries.pop_front() else { return };
            // A call in progress for this long is no longer waited for.
            self.under_way.remove(&entry.seq);
            self.gone = entry.seq;
        }
        // A check that needed many entries has ended.
        if self.entries.capacity() > 4 * self.entries.len().max(ALWAYS) {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

/// Reads the journal continuously from some position. Entries of finished calls are read only once, and may then be
/// dropped.
#[derive(Debug)]
pub struct Reader {
    /// Number of the last entry that it need not read again.
    read: u64,
    /// The fitting ones of those.
    found: Vec<Entry>,
}

impl Reader {
    /// Starts reading after `mark`.
    pub fn after(mark: u64) -> Reader {
        Reader { read: mark, found: Vec::new() }
    }

    /// All entries that fit, from the start on.
    pub(super) fn read(
        &mut self,
        kept: &RecentEntries,
        fits: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Entry>, ReadError> {
        let (settled, _) = kept.read_on();
        let mut all = Vec::new();
        for entry in kept.after(self.read)?.filter(|entry| fits(entry)) {
            if entry.seq <= settled { self.found.push(entry.clone()) } else { all.push(entry.clone()) }
        }
        self.read = self.read.max(settled);
        all.splice(..0, self.found.iter().cloned());
        Ok(all)
    }
}
