//! A slow reader of all objects of a kind.

use std::sync::{Arc, PoisonError};

use super::collection::{BATCH_BYTES, Expired};
use super::place::Place;
use super::record::{Key, Record};

/// The objects of one kind at one revision, read a few at a time: a reader that pauses keeps neither these
/// objects nor their later versions in memory.
#[derive(Debug)]
pub struct Walk {
    place: Arc<Place>,
    revision: u64,
    namespace: Option<String>,
    last: Option<Key>,
}

impl Walk {
    pub(super) fn new(place: Arc<Place>, revision: u64, namespace: Option<&str>) -> Self {
        Self { place, revision, namespace: namespace.map(str::to_owned), last: None }
    }

    /// The revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The next objects by namespace and name, at most `limit`, and fewer if they are large; none after the last.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the history does not reach back to the revision any more.
    pub fn next(&mut self, limit: usize) -> Result<Vec<Arc<Record>>, Expired> {
        let collection = self.place.collection.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = collection.snapshot_at(self.revision)?;
        drop(collection);
        let mut bytes = 0;
        let short =
            snapshot.iter(self.namespace.as_deref(), self.last.as_ref()).take(limit).take_while(|record| {
                let fits = bytes < BATCH_BYTES;
                bytes += record.json().len();
                fits
            });
        let records: Vec<Arc<Record>> = short.cloned().collect();
        if let Some(last) = records.last() {
            self.last = Some(last.key().clone());
        }
        Ok(records)
    }
}
