//! One kind's objects and its recent history.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::record::{Change, Event, Key, Record};

/// How much history each kind keeps. The oldest changes beyond either limit are discarded.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// The number of changes.
    pub events: usize,
    /// The bytes of JSON of these changes' objects.
    pub bytes: usize,
}

impl Default for Keep {
    /// Enough for a reader that pauses while 5,000 nodes are initialised, with at most 64 MiB for each kind.
    fn default() -> Self {
        Self { events: 32_768, bytes: 64 << 20 }
    }
}

/// The history does not reach back to the requested revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// The requested revision.
    pub asked: u64,
    /// The oldest revision since which all changes are known.
    pub oldest: u64,
}

/// The bytes of JSON of the objects that a reader takes at a time; the last one may exceed it. A reader that
/// takes objects and does not pass them on keeps at most this much in memory.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// The size of an object, in bytes of JSON.
fn size(record: &Arc<Record>) -> i64 {
    i64::try_from(record.json().len()).unwrap_or(i64::MAX)
}

/// All objects of a kind at one revision. Creating and cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: u64,
    objects: OrdMap<Key, Arc<Record>>,
}

impl Snapshot {
    /// No objects.
    #[must_use]
    pub fn empty(revision: u64) -> Self {
        Self { revision, objects: OrdMap::new() }
    }

    /// The revision of this state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// One object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        self.objects.get(key)
    }

    /// The objects of a namespace (of all if it is `None`) by namespace and name; only those after `after`.
    pub fn iter<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Record>> {
        let first = Key::new(namespace.unwrap_or_default(), "");
        let from = match after {
            Some(after) if *after >= first => Bound::Excluded(after.clone()),
            _ => Bound::Included(first),
        };
        self.objects
            .range((from, Bound::Unbounded))
            .map(|(_, record)| record)
            .take_while(move |record| namespace.is_none_or(|wanted| record.key().namespace() == wanted))
    }
}

/// The current objects of one kind, and their latest changes, oldest first.
#[derive(Debug)]
pub(super) struct Collection {
    objects: OrdMap<Key, Arc<Record>>,
    log: VecDeque<Arc<Event>>,
    log_bytes: usize,
    /// All changes after this revision are in the log.
    complete_after: u64,
    keep: Keep,
    /// Whether there will be no more changes.
    closed: bool,
}

impl Collection {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            objects: OrdMap::new(),
            log: VecDeque::new(),
            log_bytes: 0,
            complete_after: 0,
            keep,
            closed: false,
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Record>> {
        self.objects.get(key)
    }

    pub(super) fn snapshot(&self, revision: u64) -> Snapshot {
        Snapshot { revision, objects: self.objects.clone() }
    }

    /// Reconstructs an earlier state by undoing later changes.
    pub(super) fn snapshot_at(&self, revision: u64) -> Result<Snapshot, Expired> {
        self.check_history(revision)?;
        let mut objects = self.objects.clone();
        for event in self.log.iter().rev().take_while(|event| event.record.revision() > revision) {
            match &event.previous {
                Some(previous) => objects.insert(previous.key().clone(), Arc::clone(previous)),
                None => objects.remove(event.record.key()),
            };
        }
        Ok(Snapshot { revision, objects })
    }

    pub(super) fn check_history(&self, revision: u64) -> Result<(), Expired> {
        if revision < self.complete_after {
            return Err(Expired { asked: revision, oldest: self.complete_after });
        }
        Ok(())
    }

    /// Appends at most `limit` changes after `revision` to `into`; fewer if they are large.
    pub(super) fn since(
        &self,
        revision: u64,
        limit: usize,
        into: &mut Vec<Arc<Event>>,
    ) -> Result<(), Expired> {
        self.check_history(revision)?;
        let first = self.log.partition_point(|event| event.record.revision() <= revision);
        let mut bytes = 0;
        let short = self.log.range(first..).take(limit).take_while(|event| {
            let fits = bytes < BATCH_BYTES;
            bytes += event.record.json().len();
            fits
        });
        into.extend(short.cloned());
        if self.closed && into.is_empty() {
            return Err(Expired { asked: revision, oldest: self.complete_after });
        }
        Ok(())
    }

    /// Removes all objects; readers of changes come to an end. Returns the bytes that the objects had.
    pub(super) fn close(&mut self) -> i64 {
        self.closed = true;
        let objects = std::mem::take(&mut self.objects);
        objects.values().map(size).sum()
    }

    /// Discards the history so far.
    pub(super) fn forget(&mut self) {
        if let Some(last) = self.log.back() {
            self.complete_after = last.record.revision();
        }
        self.log.clear();
        self.log_bytes = 0;
    }

    /// Adds a change; returns by how many bytes the objects' JSON grows.
    pub(super) fn commit(&mut self, change: Change, record: Arc<Record>) -> i64 {
        let previous = match change {
            Change::Put => self.objects.insert(record.key().clone(), Arc::clone(&record)),
            Change::Removed => self.objects.remove(record.key()),
        };
        let now = if change == Change::Put { size(&record) } else { 0 };
        let grows = now - previous.as_ref().map_or(0, size);
        self.log_bytes += record.json().len();
        self.log.push_back(Arc::new(Event { change, record, previous, line: OnceLock::new() }));
        while self.log.len() > self.keep.events || self.log_bytes > self.keep.bytes {
            let Some(forgotten) = self.log.pop_front() else { break };
            self.log_bytes -= forgotten.record.json().len();
            self.complete_after = forgotten.record.revision();
        }
        grows
    }
}
