//! A watched copy of all objects of one kind, shared by every controller.
//!
//! Each kind has one list and one watch. Controllers register their reactions to changes before it runs. They
//! add their own writes at once ([`Cache::observe`]). So a controller reads its own writes and never creates
//! a Pod twice because the watch was slower than it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::tasks::Tasks;

/// The key of an object of a known kind. Cluster-scoped objects have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl Key {
    /// The key of this object.
    pub fn of<K: Resource>(object: &K) -> Key {
        let meta = object.meta();
        Key {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// The key of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> Key {
        Key { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Key {
        Key { namespace: String::new(), name: name.to_owned() }
    }
}

/// The requirements of the cache for a kind.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}
impl<K> Kind for K where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

/// A function that is called on each change, with the object before and after it.
type Handler<K> = Box<dyn Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync>;

/// How many removed objects are remembered, so that a late answer does not bring one back.
const REMEMBERED: usize = 4096;

/// All objects of one kind as they were last seen.
pub struct Cache<K> {
    objects: RwLock<HashMap<Key, Arc<K>>>,
    handlers: RwLock<Vec<Handler<K>>>,
    removed: Mutex<Removed>,
    changing: Mutex<()>,
    synced: watch::Sender<bool>,
}

#[derive(Default)]
struct Removed {
    uids: HashSet<String>,
    order: VecDeque<String>,
}

impl<K: Kind> Cache<K> {
    /// An empty cache.
    pub fn new() -> Arc<Cache<K>> {
        Arc::new(Cache {
            objects: RwLock::new(HashMap::new()),
            handlers: RwLock::new(Vec::new()),
            removed: Mutex::new(Removed::default()),
            changing: Mutex::new(()),
            synced: watch::Sender::new(false),
        })
    }

    /// Registers a function that is called on each change, in order. It must not block.
    pub fn on_change(&self, handler: impl Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync + 'static) {
        self.handlers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(handler));
    }

    /// Registers a function that is called with the key of each changed object.
    pub fn on_key(&self, handler: impl Fn(Key) + Send + Sync + 'static) {
        self.on_change(move |before, after| {
            if let Some(object) = after.or(before) {
                handler(Key::of(object.as_ref()));
            }
        });
    }

    /// Registers a function that is called with the key of a changed object's controller, if the controller
    /// is of this kind.
    pub fn on_controller(&self, kind: &'static str, handler: impl Fn(Key) + Send + Sync + 'static) {
        self.on_change(move |before, after| {
            for object in [before, after].into_iter().flatten() {
                let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true));
                if let Some(owner) = owner.filter(|owner| owner.kind == kind) {
                    handler(Key::new(&object.namespace().unwrap_or_default(), &owner.name));
                }
            }
        });
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Every object, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<K>> {
        let mut all: Vec<_> = {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            objects.values().cloned().collect()
        };
        all.sort_by_cached_key(|object| Key::of(object.as_ref()));
        all
    }

    /// Every object of one namespace, in the order of their names.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        let mut all: Vec<_> = {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            objects
                .iter()
                .filter(|(key, _)| key.namespace == namespace)
                .map(|(_, object)| object.clone())
                .collect()
        };
        all.sort_by_cached_key(|object| Key::of(object.as_ref()));
        all
    }

    /// Adds an object from the answer to a write.
    pub fn observe(&self, object: K) {
        self.put(object);
    }

    /// Removes an object that this process has deleted.
    pub fn forget(&self, key: &Key, uid: &str) {
        self.remember_removed(uid);
        self.take(key, uid);
    }

    /// Waits for the first complete list.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as the cache, so this wait cannot fail.
        let _ = synced.wait_for(|done| *done).await;
    }

    /// Lists and watches until the tasks are stopped.
    pub fn run(self: &Arc<Self>, tasks: &Tasks, api: Api<K>) {
        let cache = self.clone();
        tasks.spawn(async move {
            let config = watcher::Config::default().any_semantic().page_size(2000);
            let mut events = std::pin::pin!(watcher(api, config).default_backoff());
            let mut listed = HashSet::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(watcher::Event::Init) => listed.clear(),
                    Ok(watcher::Event::InitApply(object)) => {
                        listed.insert(Key::of(&object));
                        cache.put(object);
                    }
                    Ok(watcher::Event::InitDone) => {
                        cache.keep_only(&listed);
                        listed.clear();
                        cache.synced.send_replace(true);
                    }
                    Ok(watcher::Event::Apply(object)) => cache.put(object),
                    Ok(watcher::Event::Delete(object)) => {
                        let uid = object.uid().unwrap_or_default();
                        cache.remember_removed(&uid);
                        cache.take(&Key::of(&object), &uid);
                    }
                    Err(error) => {
                        tracing::debug!(kind = %K::kind(&()), %error, "the watch will be started again")
                    }
                }
            }
        });
    }

    fn one_change_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut object: K) {
        object.managed_fields_mut().clear();
        let _one = self.one_change_at_a_time();
        let uid = object.uid().unwrap_or_default();
        if self.removed.lock().unwrap_or_else(PoisonError::into_inner).uids.contains(&uid) {
            return;
        }
        let key = Key::of(&object);
        let object = Arc::new(object);
        let before = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = objects.get(&key)
                && known.meta().uid == object.meta().uid
                && version(known.as_ref()) >= version(object.as_ref())
            {
                return;
            }
            objects.insert(key, object.clone())
        };
        self.tell(before.as_ref(), Some(&object));
    }

    fn take(&self, key: &Key, uid: &str) {
        let _one = self.one_change_at_a_time();
        let before = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            match objects.get(key) {
                Some(known) if known.meta().uid.as_deref() == Some(uid) => objects.remove(key),
                _ => None,
            }
        };
        if before.is_some() {
            self.tell(before.as_ref(), None);
        }
    }

    fn keep_only(&self, listed: &HashSet<Key>) {
        let gone: Vec<_> = {
            let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
            objects
                .iter()
                .filter(|(key, _)| !listed.contains(*key))
                .map(|(key, object)| (key.clone(), object.uid()))
                .collect()
        };
        for (key, uid) in gone {
            self.take(&key, &uid.unwrap_or_default());
        }
    }

    fn tell(&self, before: Option<&Arc<K>>, after: Option<&Arc<K>>) {
        for handler in self.handlers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            handler(before, after);
        }
    }

    fn remember_removed(&self, uid: &str) {
        let mut removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
        if removed.uids.insert(uid.to_owned()) {
            removed.order.push_back(uid.to_owned());
        }
        if removed.order.len() > REMEMBERED
            && let Some(oldest) = removed.order.pop_front()
        {
            removed.uids.remove(&oldest);
        }
    }
}

/// The resource version as a number: it grows in etcd and in the embedded server.
fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map.metadata.namespace = Some("n".to_owned());
        map.metadata.uid = Some(uid.to_owned());
        map.metadata.resource_version = Some(version.to_owned());
        map
    }

    #[test]
    fn older_answers_and_removed_objects_do_not_come_back() {
        let cache = Cache::<ConfigMap>::new();
        let changes = Arc::new(AtomicUsize::new(0));
        let count = changes.clone();
        cache.on_change(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let key = Key::new("n", "a");
        cache.observe(object("a", "1", "10"));
        cache.observe(object("a", "1", "9"));
        assert_eq!(cache.get(&key).and_then(|map| map.resource_version()).as_deref(), Some("10"));
        cache.forget(&key, "1");
        cache.observe(object("a", "1", "11"));
        assert!(cache.get(&key).is_none(), "the removed object came back");
        cache.observe(object("a", "2", "12"));
        assert!(cache.get(&key).is_some(), "a new object of the same name is another one");
        assert_eq!(changes.load(Ordering::Relaxed), 3);
    }
}
