//! The store of the server: objects by kind, namespace and name with one revision counter, and their recent
//! changes.
//!
//! The store knows bytes, labels and fields, but not the meaning of kinds. Writes are sequential; a read
//! takes a snapshot that no later write changes.

mod collection;
mod draft;
mod paging;
mod place;
mod record;
mod snapshot_reader;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub use collection::{Expired, Keep, Snapshot};
pub use draft::Draft;
pub use paging::{Continue, ContinueError};
pub use record::{Change, Event, Key, Record};
pub use snapshot_reader::Walk;
pub use watch::{Cursor, Next};

use place::Place;

/// The name of the collection with one kind's objects, for example `nodes` or `leases.coordination.k8s.io`.
///
/// Two API versions or groups with the same objects share one collection.
pub type CollectionName = &'static str;

/// All objects.
#[derive(Debug)]
pub struct Store {
    places: HashMap<CollectionName, Arc<Place>>,
    /// The collections of custom resources, which come and go.
    opened: RwLock<HashMap<CollectionName, Arc<Place>>>,
    keep: Keep,
    revision: AtomicU64,
    /// Notifies waiters for a revision that does not exist yet.
    advanced: tokio::sync::watch::Sender<u64>,
    writer: Mutex<()>,
    /// The bytes of JSON of all objects.
    size: AtomicI64,
}

impl Store {
    /// An empty store for these kinds, at revision 1 like a new etcd; `keep` limits the history of each.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = CollectionName>, keep: Keep) -> Self {
        let places = names.into_iter().map(|name| (name, Arc::new(Place::new(keep))));
        Self {
            places: places.collect(),
            opened: RwLock::default(),
            keep,
            revision: AtomicU64::new(1),
            advanced: tokio::sync::watch::Sender::new(1),
            writer: Mutex::new(()),
            size: AtomicI64::new(0),
        }
    }

    fn at<T>(&self, name: CollectionName, look: impl FnOnce(&Arc<Place>) -> T) -> Option<T> {
        if let Some(place) = self.places.get(name) {
            return Some(look(place));
        }
        self.opened.read().unwrap_or_else(PoisonError::into_inner).get(name).map(look)
    }

    /// Adds a collection for the objects of a kind.
    pub fn open(&self, name: CollectionName) {
        if !self.places.contains_key(name) {
            let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
            opened.entry(name).or_insert_with(|| Arc::new(Place::new(self.keep)));
        }
    }

    /// Removes the collection of a kind with all its objects: watches end after they have reported everything.
    pub fn close(&self, name: CollectionName) {
        let closed = self.opened.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        let Some(place) = closed else { return };
        let gone = place.collection.write().unwrap_or_else(PoisonError::into_inner).close();
        self.size.fetch_sub(gone, Ordering::Relaxed);
        place.changed.send_modify(|_| {});
    }

    /// The revision of the latest write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// A receiver for changes of the revision.
    #[must_use]
    pub fn advanced(&self) -> tokio::sync::watch::Receiver<u64> {
        self.advanced.subscribe()
    }

    /// The bytes of JSON of all objects.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.size.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The current state of one object.
    #[must_use]
    pub fn get(&self, name: CollectionName, key: &Key) -> Option<Arc<Record>> {
        self.at(name, |place| {
            place.collection.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
        })?
    }

    /// The current objects of a kind.
    #[must_use]
    pub fn snapshot(&self, name: CollectionName) -> Snapshot {
        let taken = self.at(name, |place| {
            // Under the collection's lock the counter cannot be behind the collection: see `Transaction::commit`.
            let collection = place.collection.read().unwrap_or_else(PoisonError::into_inner);
            collection.snapshot(self.revision())
        });
        taken.unwrap_or_else(|| Snapshot::empty(self.revision()))
    }

    /// All objects of a kind at `revision`.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the history does not reach back that far.
    pub fn snapshot_at(&self, name: CollectionName, revision: u64) -> Result<Snapshot, Expired> {
        let taken = self.at(name, |place| {
            place.collection.read().unwrap_or_else(PoisonError::into_inner).snapshot_at(revision)
        });
        taken.unwrap_or_else(|| Ok(Snapshot::empty(revision)))
    }

    /// A reader of all changes of a kind after `revision`.
    ///
    /// # Errors
    ///
    /// [`Expired`] if some of them were already discarded.
    pub fn watch(&self, name: CollectionName, revision: u64) -> Result<Cursor, Expired> {
        let place = self.at(name, Arc::clone).unwrap_or_else(|| Arc::new(Place::new(self.keep)));
        place.collection.read().unwrap_or_else(PoisonError::into_inner).check_history(revision)?;
        Ok(Cursor::new(place, revision))
    }

    /// The current objects of a kind, or of one namespace, to be read a few at a time.
    #[must_use]
    pub fn walk(&self, name: CollectionName, namespace: Option<&str>) -> Walk {
        let place = self.at(name, Arc::clone).unwrap_or_else(|| Arc::new(Place::new(self.keep)));
        // As in `snapshot`.
        let collection = place.collection.read().unwrap_or_else(PoisonError::into_inner);
        let revision = self.revision();
        drop(collection);
        Walk::new(place, revision, namespace)
    }

    /// A reader of a kind's objects at an earlier revision; it fails if the history does not reach back that far.
    #[must_use]
    pub fn walk_at(&self, name: CollectionName, namespace: Option<&str>, revision: u64) -> Walk {
        let place = self.at(name, Arc::clone).unwrap_or_else(|| Arc::new(Place::new(self.keep)));
        Walk::new(place, revision, namespace)
    }

    /// Moves a reader that has read everything to the current revision, and returns up to which revision it
    /// has read.
    pub fn progress(&self, cursor: &mut Cursor) -> u64 {
        // As in `snapshot`: under the lock, nothing of this kind has a revision between the two.
        cursor.advance_if_idle(|| self.revision())
    }

    /// Discards the history: a revision from before a kind's latest change is too old from now on.
    pub fn forget(&self) {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        for place in self.places.values().chain(opened.values()) {
            place.collection.write().unwrap_or_else(PoisonError::into_inner).forget();
        }
    }

    /// The revision of the latest change of a kind, for data that is derived from it.
    #[must_use]
    pub fn last_change(&self, name: CollectionName) -> u64 {
        self.at(name, |place| *place.changed.borrow()).unwrap_or(0)
    }

    /// Begins a write; other writers wait until the transaction is dropped. Readers do not wait.
    #[must_use]
    pub fn begin(&self) -> Transaction<'_> {
        Transaction { store: self, _writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// The right to write. Writes are visible at once and cannot be undone, so validate first.
#[derive(Debug)]
pub struct Transaction<'a> {
    store: &'a Store,
    _writer: MutexGuard<'a, ()>,
}

impl Transaction<'_> {
    /// The current state of one object.
    #[must_use]
    pub fn get(&self, name: CollectionName, key: &Key) -> Option<Arc<Record>> {
        self.store.get(name, key)
    }

    /// The current objects of a kind.
    #[must_use]
    pub fn snapshot(&self, name: CollectionName) -> Snapshot {
        self.store.snapshot(name)
    }

    /// The revision that the next write will have.
    #[must_use]
    pub fn next_revision(&self) -> u64 {
        self.store.revision() + 1
    }

    /// Writes a new or changed object, and returns it with its resource version.
    pub fn put(&self, name: CollectionName, draft: Draft) -> Arc<Record> {
        let record = Arc::new(draft.into_record(self.next_revision()));
        self.commit(name, Change::Put, &record);
        record
    }

    /// Removes an object; `last` is its last state, which is returned with the revision of its removal.
    pub fn remove(&self, name: CollectionName, last: Draft) -> Arc<Record> {
        let record = Arc::new(last.into_record(self.next_revision()));
        self.commit(name, Change::Removed, &record);
        record
    }

    fn commit(&self, name: CollectionName, change: Change, record: &Arc<Record>) {
        let Some(place) = self.store.at(name, Arc::clone) else { return };
        {
            let mut collection = place.collection.write().unwrap_or_else(PoisonError::into_inner);
            let grows = collection.commit(change, Arc::clone(record));
            self.store.size.fetch_add(grows, Ordering::Relaxed);
            // Published under the lock: a reader of the collection and then the counter sees both or neither.
            self.store.revision.store(record.revision(), Ordering::Release);
        }
        place.changed.send_replace(record.revision());
        self.store.advanced.send_replace(record.revision());
    }
}
