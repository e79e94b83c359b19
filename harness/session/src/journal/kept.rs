//! The part of the journal that a mirror keeps.

use harness_clouds::{Entry, Outcome};
use harness_core::probe::ReadError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many entries are kept whoever reads them; some 400 bytes each.
const ALWAYS: usize = 10_000;
/// How many are kept for checks that began before them; as many as the fake cloud keeps.
const AT_MOST: usize = 200_000;

/// Entries without gaps, the last ones of the journal.
#[derive(Default)]
pub(super) struct Kept {
    entries: VecDeque<Entry>,
    /// How many are gone, which is the number of the last of them.
    gone: u64,
    /// Numbers of those under way.
    under_way: BTreeSet<u64>,
    /// Where checks that still run began to look, and how many began there.
    beginnings: BTreeMap<u64, usize>,
}

/// Whether nothing of an entry is still to come.
pub(super) fn is_over(entry: &Entry) -> bool {
    entry.outcome != Outcome::UnderWay
}

impl Kept {
    /// Nothing yet of what comes after `from`.
    pub(super) fn since(from: u64) -> Kept {
        Kept { gone: from, ..Kept::default() }
    }

    /// Number of the last entry that is no longer kept.
    pub(super) fn gone(&self) -> u64 {
        self.gone
    }

    /// Number of the last entry, 0 when there was none.
    pub(super) fn last(&self) -> u64 {
        self.gone + self.entries.len() as u64
    }

    /// All of it.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Where to read on: before the first entry under way, else after the last; and whether one is under way.
    pub(super) fn read_on(&self) -> (u64, bool) {
        match self.under_way.first() {
            Some(first) => (first - 1, true),
            None => (self.last(), false),
        }
    }

    /// The entries after `mark`.
    ///
    /// # Errors
    /// When some of them are no longer kept.
    pub(super) fn after(&self, mark: u64) -> Result<impl DoubleEndedIterator<Item = &Entry>, ReadError> {
        let Some(skip) = mark.checked_sub(self.gone) else {
            let text = format!(
                "calls #{} to #{} to the cloud are no longer kept: there were {} since, and {ALWAYS} are kept for everybody, \
                 {AT_MOST} for a check that began before them; events.jsonl has all of them",
                mark + 1,
                self.gone,
                self.entries.len(),
            );
            return Err(ReadError { text, fatal: true });
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.entries.len());
        Ok(self.entries.range(skip..))
    }

    /// Takes an entry in, which is known or the next; says whether anything is new.
    pub(super) fn take(&mut self, entry: Entry) -> bool {
        let (seq, over) = (entry.seq, is_over(&entry));
        let Some(at) = seq.checked_sub(self.gone + 1).and_then(|at| usize::try_from(at).ok()) else {
            return false;
        };
        match self.entries.get_mut(at) {
            // One that was seen to end is not taken back: an answer may be older than the last one.
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

    /// A check begins to look here.
    pub(super) fn begin(&mut self) -> u64 {
        let here = self.last();
        *self.beginnings.entry(here).or_default() += 1;
        here
    }

    /// A check that began there has ended.
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
            // What is under way for so long is not waited for any more.
            self.under_way.remove(&entry.seq);
            self.gone = entry.seq;
        }
        // A check that needed many has ended.
        if self.entries.capacity() > 4 * self.entries.len().max(ALWAYS) {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }
}

/// Reads the journal on and on from some position. What it has read of calls that are over it does not read again, and it may be
/// let go of.
#[derive(Debug)]
pub struct Reader {
    /// Number of the last entry that it need not read again.
    read: u64,
    /// What fitted of those.
    found: Vec<Entry>,
}

impl Reader {
    /// Reads what comes after `mark`.
    pub fn after(mark: u64) -> Reader {
        Reader { read: mark, found: Vec::new() }
    }

    /// All that fit from the beginning on.
    pub(super) fn read(
        &mut self,
        kept: &Kept,
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
