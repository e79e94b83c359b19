//! A reader of one kind's changes.

use std::sync::{Arc, PoisonError};

use super::collection::Expired;
use super::place::Place;
use super::record::Event;

/// How many changes are read at a time, so that a reader far behind does not hold the collection's lock for long.
const BATCH: usize = 256;

/// A position in a kind's history.
///
/// A watcher has only this: when the client takes changes, they are read from the history that all watchers
/// share. A client that takes none costs no memory, and its watch ends once the history has moved past it.
#[derive(Debug)]
pub struct Cursor {
    place: Arc<Place>,
    changed: tokio::sync::watch::Receiver<u64>,
    seen: u64,
}

/// The result of reading with a [`Cursor`].
#[derive(Debug)]
pub enum Next {
    /// Changes, oldest first; at least one.
    Events(Vec<Arc<Event>>),
    /// The reader was too slow, and changes that it had not read were discarded.
    Lost(Expired),
}

impl Cursor {
    pub(super) fn new(place: Arc<Place>, revision: u64) -> Self {
        let changed = place.changed.subscribe();
        Self { place, changed, seen: revision }
    }

    /// The revision up to which everything was read.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The changes that can be read now; `None` if there are none.
    pub fn try_next(&mut self) -> Option<Next> {
        // Marked before the read, so that a later change wakes `next`.
        self.changed.mark_unchanged();
        let mut events = Vec::new();
        let collection = self.place.collection.read().unwrap_or_else(PoisonError::into_inner);
        if let Err(expired) = collection.since(self.seen, BATCH, &mut events) {
            return Some(Next::Lost(expired));
        }
        drop(collection);
        self.seen = events.last()?.record.revision();
        Some(Next::Events(events))
    }

    /// If nothing is left to read, moves on to the revision that `now` returns. Returns up to which revision
    /// was read.
    pub(super) fn advance_if_idle(&mut self, now: impl FnOnce() -> u64) -> u64 {
        let mut events = Vec::new();
        let collection = self.place.collection.read().unwrap_or_else(PoisonError::into_inner);
        if collection.since(self.seen, 1, &mut events).is_ok() && events.is_empty() {
            self.seen = self.seen.max(now());
        }
        self.seen
    }

    /// Waits for changes. May be dropped at any time without losing one.
    pub async fn next(&mut self) -> Next {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            if self.changed.changed().await.is_err() {
                // The sender is in the storage that this cursor holds, so this does not happen; an idle watch
                // is the harmless answer.
                std::future::pending::<()>().await;
            }
        }
    }
}
