//! What a watch has shown: every object as it is now, and its recent versions in watch order.

use kube::Resource;
use kube::runtime::watcher::Event;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use tokio::time::Instant;

/// How many versions of one object are kept; the oldest go first.
const KEPT_VERSIONS: usize = 256;

/// Whether a version came with an apply or with the deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Created or changed.
    Applied,
    /// Deleted; the object is its last state.
    Deleted,
}

/// One version of an object as the watch showed it.
#[derive(Debug)]
pub struct Version<K> {
    /// When the watch delivered it.
    pub at: Instant,
    /// What happened.
    pub change: Change,
    /// The object.
    pub object: Arc<K>,
}

impl<K> Clone for Version<K> {
    fn clone(&self) -> Self {
        Version { at: self.at, change: self.change, object: self.object.clone() }
    }
}

#[derive(Debug)]
struct Inner<K> {
    objects: BTreeMap<(String, String), Vec<Version<K>>>,
    /// Keys seen since a (re-)list began; what a finished list did not name is gone.
    listing: Option<Vec<(String, String)>>,
    ready: bool,
}

/// A shared view of one kind of object, fed by a watch.
#[derive(Debug)]
pub struct Cache<K> {
    inner: Arc<RwLock<Inner<K>>>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Cache { inner: self.inner.clone() }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Cache {
            inner: Arc::new(RwLock::new(Inner { objects: BTreeMap::new(), listing: None, ready: false })),
        }
    }
}

impl<K: Resource> Cache<K> {
    fn read<T>(&self, look: impl FnOnce(&Inner<K>) -> T) -> T {
        look(&self.inner.read().expect("no holder of this lock panics"))
    }

    /// Takes one event of the watch in.
    pub(super) fn take(&self, event: Event<K>) {
        let mut inner = self.inner.write().expect("no holder of this lock panics");
        match event {
            Event::Init => inner.listing = Some(Vec::new()),
            Event::InitApply(object) => {
                let key = key_of(&object);
                if let Some(listing) = &mut inner.listing {
                    listing.push(key.clone());
                }
                push(&mut inner, key, Change::Applied, object);
            }
            Event::InitDone => {
                let listed = inner.listing.take().unwrap_or_default();
                let now = Instant::now();
                for (key, versions) in &mut inner.objects {
                    let Some(last) = versions.last() else { continue };
                    if last.change == Change::Applied && !listed.contains(key) {
                        let gone = Version { at: now, change: Change::Deleted, object: last.object.clone() };
                        versions.push(gone);
                    }
                }
                inner.ready = true;
            }
            Event::Apply(object) => push(&mut inner, key_of(&object), Change::Applied, object),
            Event::Delete(object) => push(&mut inner, key_of(&object), Change::Deleted, object),
        }
    }

    /// Whether the first list is complete.
    pub fn is_ready(&self) -> bool {
        self.read(|inner| inner.ready)
    }

    /// How many versions since then differ from the one before in what `facts` says of them; objects that came or went
    /// count.
    pub fn changes_since<F: PartialEq>(&self, since: Instant, facts: impl Fn(&K) -> F) -> usize {
        let of_one = |versions: &[Version<K>]| {
            let news = versions.iter().enumerate().filter(|(at, version)| {
                let before = at.checked_sub(1).map(|at| &versions[at]);
                let same = |old: &Version<K>| {
                    old.change == version.change && facts(&old.object) == facts(&version.object)
                };
                version.at >= since && !before.is_some_and(same)
            });
            news.count()
        };
        self.read(|inner| inner.objects.values().map(|versions| of_one(versions)).sum())
    }

    /// The object as it is now, if it is there. Cluster-scoped kinds have the empty namespace.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read(|inner| {
            inner.objects.get(&(namespace.to_owned(), name.to_owned())).and_then(|v| current(v))
        })
    }

    /// All objects that are there now.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read(|inner| inner.objects.values().filter_map(|v| current(v)).collect())
    }

    /// The recent versions of one object, oldest first, deletions included; the name may have been used more than once.
    pub fn history(&self, namespace: &str, name: &str) -> Vec<Version<K>> {
        self.read(|inner| {
            inner.objects.get(&(namespace.to_owned(), name.to_owned())).cloned().unwrap_or_default()
        })
    }

    /// Whether the view is at least as new as `resource_version` for that object, or the object is gone.
    pub fn has_caught_up(&self, namespace: &str, name: &str, resource_version: &str) -> bool {
        let wanted: u64 = resource_version.parse().unwrap_or(0);
        self.read(|inner| {
            let versions = inner.objects.get(&(namespace.to_owned(), name.to_owned()));
            let Some(last) = versions.and_then(|v| v.last()) else { return false };
            let seen = last.object.meta().resource_version.as_deref().and_then(|v| v.parse::<u64>().ok());
            seen.is_some_and(|seen| seen >= wanted)
        })
    }
}

fn key_of<K: Resource>(object: &K) -> (String, String) {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn current<K>(versions: &[Version<K>]) -> Option<Arc<K>> {
    versions.last().filter(|v| v.change == Change::Applied).map(|v| v.object.clone())
}

fn push<K: Resource>(inner: &mut Inner<K>, key: (String, String), change: Change, object: K) {
    let versions = inner.objects.entry(key).or_default();
    let same = |last: &Version<K>| {
        last.change == change && last.object.meta().resource_version == object.meta().resource_version
    };
    if versions.last().is_some_and(same) {
        return;
    }
    if versions.len() >= KEPT_VERSIONS {
        versions.remove(0);
    }
    versions.push(Version { at: Instant::now(), change, object: Arc::new(object) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Node;

    fn node(name: &str, version: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.resource_version = Some(version.into());
        node
    }

    #[tokio::test]
    async fn keeps_versions_in_order_and_knows_what_a_relist_lost() {
        let cache = Cache::<Node>::default();
        cache.take(Event::Init);
        cache.take(Event::InitApply(node("a", "1")));
        assert!(!cache.is_ready());
        cache.take(Event::InitDone);
        cache.take(Event::Apply(node("a", "2")));
        assert!(cache.has_caught_up("", "a", "2") && !cache.has_caught_up("", "a", "3"));
        cache.take(Event::Init);
        cache.take(Event::InitApply(node("b", "5")));
        cache.take(Event::InitDone);
        assert!(cache.find("", "a").is_none());
        assert_eq!(cache.all().len(), 1);
        let changes: Vec<_> = cache.history("", "a").iter().map(|v| v.change).collect();
        assert_eq!(changes, [Change::Applied, Change::Applied, Change::Deleted]);
    }

    #[tokio::test]
    async fn counts_changes_that_matter() {
        let cache = Cache::<Node>::default();
        cache.take(Event::Apply(node("a", "1")));
        let since = Instant::now();
        let label = |node: &Node| node.metadata.labels.clone();
        // A heartbeat: another version with the same facts.
        cache.take(Event::Apply(node("a", "2")));
        assert_eq!(cache.changes_since(since, label), 0);
        let mut labelled = node("a", "3");
        labelled.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
        cache.take(Event::Apply(labelled.clone()));
        assert_eq!(cache.changes_since(since, label), 1);
        cache.take(Event::Delete(labelled));
        cache.take(Event::Apply(node("b", "5")));
        assert_eq!(cache.changes_since(since, label), 3);
    }
}
