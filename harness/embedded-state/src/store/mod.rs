//! What the server remembers: objects by kind, namespace and name under one revision counter, and what changed lately.
//!
//! The store knows bytes, labels and fields, never what a kind means.
//! Writes are one after another; a read takes a snapshot that no later write disturbs.

mod collection;
mod draft;
mod paging;
mod place;
mod record;
mod walk;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub use collection::{Expired, Keep, Snapshot};
pub use draft::Draft;
pub use paging::{Continue, ContinueError};
pub use record::{Change, Event, Key, Record};
pub use walk::Walk;
pub use watch::{Cursor, Next};

use place::Place;

/// The name under which one kind's objects are kept, for example `nodes` or `leases.coordination.k8s.io`.
///
/// Two API versions or groups that serve the same objects share one.
pub type CollectionName = &'static str;

/// All objects.
#[derive(Debug)]
pub struct Store {
    places: HashMap<CollectionName, Arc<Place>>,
    /// Those of custom resources, which come and go.
    opened: RwLock<HashMap<CollectionName, Arc<Place>>>,
    keep: Keep,
    revision: AtomicU64,
    /// Tells those who wait for a revision that is not there yet.
    advanced: tokio::sync::watch::Sender<u64>,
    writer: Mutex<()>,
    /// Bytes of JSON of all objects there are.
    size: AtomicI64,
}

impl Store {
    /// An empty store for the kinds named, at revision 1 as a new etcd has it; `keep` bounds what each remembers.
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

    /// Has a place for the objects of a kind from now on.
    pub fn open(&self, name: CollectionName) {
        if !self.places.contains_key(name) {
            let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
            opened.entry(name).or_insert_with(|| Arc::new(Place::new(self.keep)));
        }
    }

    /// Gives up the place of a kind with all objects there: watches end when they have told what there is to tell.
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

    /// Where changes of the revision are heard.
    #[must_use]
    pub fn advanced(&self) -> tokio::sync::watch::Receiver<u64> {
        self.advanced.subscribe()
    }

    /// How many bytes of JSON all objects are.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.size.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// One object as it is now.
    #[must_use]
    pub fn get(&self, name: CollectionName, key: &Key) -> Option<Arc<Record>> {
        self.at(name, |place| {
            place.collection.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
        })?
    }

    /// All objects of a kind as they are now.
    #[must_use]
    pub fn snapshot(&self, name: CollectionName) -> Snapshot {
        let taken = self.at(name, |place| {
            // Under the collection's lock the counter cannot be behind what the collection holds: see `Transaction::commit`.
            let collection = place.collection.read().unwrap_or_else(PoisonError::into_inner);
            collection.snapshot(self.revision())
        });
        taken.unwrap_or_else(|| Snapshot::empty(self.revision()))
    }

    /// All objects of a kind as they were at `revision`.
    ///
    /// # Errors
    ///
    /// [`Expired`] where the history does not reach back that far.
    pub fn snapshot_at(&self, name: CollectionName, revision: u64) -> Result<Snapshot, Expired> {
        let taken = self.at(name, |place| {
            place.collection.read().unwrap_or_else(PoisonError::into_inner).snapshot_at(revision)
        });
        taken.unwrap_or_else(|| Ok(Snapshot::empty(revision)))
    }

    /// A reader of everything that changes in a kind after `revision`.
    ///
    /// # Errors
    ///
    /// [`Expired`] where some of it is forgotten already.
    pub fn watch(&self, name: CollectionName, revision: u64) -> Result<Cursor, Expired> {
        let place = self.at(name, Arc::clone).unwrap_or_else(|| Arc::new(Place::new(self.keep)));
        place.collection.read().unwrap_or_else(PoisonError::into_inner).check_history(revision)?;
        Ok(Cursor::new(place, revision))
    }

    /// All objects of a kind, or those of one namespace, as they are now, to be read a few at a time.
    #[must_use]
    pub fn walk(&self, name: CollectionName, namespace: Option<&str>) -> Walk {
        let place = self.at(name, Arc::clone).unwrap_or_else(|| Arc::new(Place::new(self.keep)));
        // As in `snapshot`.
        let collection = place.collection.read().unwrap_or_else(PoisonError::into_inner);
        let revision = self.revision();
        drop(collection);
        Walk::new(place, revision, namespace)
    }

    /// Moves a reader that has read everything on to the present, and says up to where it has read.
    pub fn progress(&self, cursor: &mut Cursor) -> u64 {
        // As in `snapshot`: under the lock, nothing of this kind has a revision between the two.
        cursor.advance_if_idle(|| self.revision())
    }

    /// Forgets all that has changed: what was read before a kind's latest change is too old from now on.
    pub fn forget(&self) {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        for place in self.places.values().chain(opened.values()) {
            place.collection.write().unwrap_or_else(PoisonError::into_inner).forget();
        }
    }

    /// The revision of the latest change of a kind, for those who derive something from it.
    #[must_use]
    pub fn last_change(&self, name: CollectionName) -> u64 {
        self.at(name, |place| *place.changed.borrow()).unwrap_or(0)
    }

    /// Begins to write; other writers wait until the transaction is dropped. Readers do not.
    #[must_use]
    pub fn begin(&self) -> Transaction<'_> {
        Transaction { store: self, _writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// The right to write. What is written is visible at once; there is no way back, so validate first.
#[derive(Debug)]
pub struct Transaction<'a> {
    store: &'a Store,
    _writer: MutexGuard<'a, ()>,
}

impl Transaction<'_> {
    /// One object as it is now.
    #[must_use]
    pub fn get(&self, name: CollectionName, key: &Key) -> Option<Arc<Record>> {
        self.store.get(name, key)
    }

    /// All objects of a kind as they are now.
    #[must_use]
    pub fn snapshot(&self, name: CollectionName) -> Snapshot {
        self.store.snapshot(name)
    }

    /// The revision that the next write will have.
    #[must_use]
    pub fn next_revision(&self) -> u64 {
        self.store.revision() + 1
    }

    /// Writes an object, new or changed, and returns it with its resource version.
    pub fn put(&self, name: CollectionName, draft: Draft) -> Arc<Record> {
        let record = Arc::new(draft.into_record(self.next_revision()));
        self.commit(name, Change::Put, &record);
        record
    }

    /// Removes an object; `last` is how it looked at its end, and is returned with the revision of its removal.
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
            // Published under the lock: whoever reads the collection and then the counter sees both or neither.
            self.store.revision.store(record.revision(), Ordering::Release);
        }
        place.changed.send_replace(record.revision());
        self.store.advanced.send_replace(record.revision());
    }
}
