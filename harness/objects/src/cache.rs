//! The state that a watch has shown: every object as it is now, its recent versions in watch order, and how fresh that
//! is.

use harness_core::probe::ReadError;
use kube::Resource;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// Number of versions that are kept of one object; the oldest are dropped first.
const KEPT_VERSIONS: usize = 256;
/// A watch that has received nothing for this long is behind: an API server sends a bookmark about every minute, so two
/// are missing.
const SILENT: Duration = Duration::from_secs(150);

/// Whether a version is from a change or from the deletion.
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

/// The state of a cache's watch.
#[derive(Clone, Debug)]
enum Source {
    /// The first list is not complete.
    Opening,
    /// The watch is open; the time of its last message.
    Heard(Instant),
    /// The watch broke at that time, for that reason, and has not been reopened.
    Broken(Instant, String),
}

/// An observer that is called for each change with the old and the new object.
pub type ChangeObserver<K> = Box<dyn Fn(Option<&K>, Option<&K>) + Send + Sync>;

struct Observers<K>(Vec<ChangeObserver<K>>);

impl<K> std::fmt::Debug for Observers<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}

#[derive(Debug)]
struct Inner<K> {
    observers: Observers<K>,
    objects: BTreeMap<(String, String), Vec<Version<K>>>,
    source: Source,
    ready: bool,
}

/// A shared view of one kind of object, fed by a watch.
#[derive(Debug)]
pub struct Cache<K> {
    kind: &'static str,
    inner: Arc<RwLock<Inner<K>>>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Cache { kind: self.kind, inner: self.inner.clone() }
    }
}

impl<K: Resource> Cache<K> {
    fn read<T>(&self, look: impl FnOnce(&Inner<K>) -> T) -> T {
        look(&self.inner.read().expect("no holder of this lock panics"))
    }

    fn write(&self, change: impl FnOnce(&mut Inner<K>)) {
        change(&mut self.inner.write().expect("no holder of this lock panics"));
    }

    /// An empty view of `kind`, a plural name.
    pub(super) fn of(kind: &'static str) -> Cache<K> {
        let observers = Observers(Vec::new());
        let inner = Inner { observers, objects: BTreeMap::new(), source: Source::Opening, ready: false };
        Cache { kind, inner: Arc::new(RwLock::new(inner)) }
    }

    /// Applies a complete list: objects that are not in it are gone.
    pub(super) fn listed(&self, objects: Vec<K>) {
        self.write(|inner| {
            let listed: BTreeSet<(String, String)> = objects.iter().map(key_of).collect();
            for object in objects {
                push(inner, key_of(&object), Change::Applied, object);
            }
            let now = Instant::now();
            for (key, versions) in &mut inner.objects {
                let Some(last) = versions.last() else { continue };
                if last.change == Change::Applied && !listed.contains(key) {
                    let gone = Version { at: now, change: Change::Deleted, object: last.object.clone() };
                    inner.observers.0.iter().for_each(|observer| observer(Some(&gone.object), None));
                    versions.push(gone);
                }
            }
            inner.ready = true;
            inner.source = Source::Heard(now);
        });
    }

    /// Applies a change that the watch shows.
    pub(super) fn changed(&self, change: Change, object: K) {
        self.write(|inner| {
            push(inner, key_of(&object), change, object);
            inner.source = Source::Heard(Instant::now());
        });
    }

    /// Calls `observer` for all existing objects as new ones, and for each change from now on.
    pub fn observe(&self, observer: ChangeObserver<K>) {
        self.write(|inner| {
            let there = inner.objects.values().filter_map(|versions| current(versions));
            there.for_each(|object| observer(None, Some(&object)));
            inner.observers.0.push(observer);
        });
    }

    /// Records that the watch is open and has no news.
    pub(super) fn heard(&self) {
        self.write(|inner| inner.source = Source::Heard(Instant::now()));
    }

    /// Records that the watch, or the list before it, broke.
    pub(super) fn broke(&self, why: &str) {
        self.write(|inner| match &mut inner.source {
            Source::Broken(_, last) => *last = why.to_owned(),
            source => *source = Source::Broken(Instant::now(), why.to_owned()),
        });
    }

    /// This view, if it is up to date.
    ///
    /// # Errors
    /// The watch is broken, or has been silent for so long that it must be behind; with its kind, since when, and why.
    pub fn current(&self) -> Result<&Cache<K>, ReadError> {
        let source = self.read(|inner| inner.source.clone());
        let kind = self.kind;
        match source {
            Source::Heard(at) if at.elapsed() <= SILENT => Ok(self),
            Source::Heard(at) => {
                let silent = at.elapsed().as_secs();
                Err(ReadError::passing(format!(
                    "the watch on {kind} is behind: it has received nothing for {silent} s"
                )))
            }
            Source::Broken(since, why) => {
                let broken = since.elapsed().as_secs_f64();
                Err(ReadError::passing(format!(
                    "the watch on {kind} has been broken for {broken:.1} s: {why}"
                )))
            }
            Source::Opening => Err(ReadError::passing(format!("the watch on {kind} is not open yet"))),
        }
    }

    /// Whether the first list is complete.
    pub fn is_ready(&self) -> bool {
        self.read(|inner| inner.ready)
    }

    /// How many versions since then differ from their predecessor in what `facts` returns; objects that were created or
    /// deleted count.
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

    /// The current object, if it exists. Cluster-scoped kinds have an empty namespace.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read(|inner| {
            inner.objects.get(&(namespace.to_owned(), name.to_owned())).and_then(|v| current(v))
        })
    }

    /// All objects that currently exist.
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
    let (before, object) = (current(versions), Arc::new(object));
    let (old, new) = match change {
        Change::Applied => (before.as_deref(), Some(object.as_ref())),
        Change::Deleted => (Some(object.as_ref()), None),
    };
    inner.observers.0.iter().for_each(|observer| observer(old, new));
    if versions.len() >= KEPT_VERSIONS {
        versions.remove(0);
    }
    versions.push(Version { at: Instant::now(), change, object });
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Node;
    use tokio::time::advance;

    fn node(name: &str, version: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.resource_version = Some(version.into());
        node
    }

    #[tokio::test]
    async fn keeps_versions_in_order_and_knows_what_a_relist_lost() {
        let cache = Cache::<Node>::of("Nodes");
        assert!(!cache.is_ready());
        cache.listed(vec![node("a", "1")]);
        assert!(cache.is_ready());
        cache.changed(Change::Applied, node("a", "2"));
        assert!(cache.has_caught_up("", "a", "2") && !cache.has_caught_up("", "a", "3"));
        cache.listed(vec![node("b", "5")]);
        assert!(cache.find("", "a").is_none());
        assert_eq!(cache.all().len(), 1);
        let changes: Vec<_> = cache.history("", "a").iter().map(|v| v.change).collect();
        assert_eq!(changes, [Change::Applied, Change::Applied, Change::Deleted]);
    }

    #[tokio::test]
    async fn counts_changes_that_matter() {
        let cache = Cache::<Node>::of("Nodes");
        cache.changed(Change::Applied, node("a", "1"));
        let since = Instant::now();
        let label = |node: &Node| node.metadata.labels.clone();
        // A heartbeat: another version with the same facts.
        cache.changed(Change::Applied, node("a", "2"));
        assert_eq!(cache.changes_since(since, label), 0);
        let mut labelled = node("a", "3");
        labelled.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
        cache.changed(Change::Applied, labelled.clone());
        assert_eq!(cache.changes_since(since, label), 1);
        cache.changed(Change::Deleted, labelled);
        cache.changed(Change::Applied, node("b", "5"));
        assert_eq!(cache.changes_since(since, label), 3);
    }

    fn trouble(cache: &Cache<Node>) -> String {
        cache.current().err().map(|error| error.text).unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn knows_when_it_cannot_be_trusted() {
        let cache = Cache::<Node>::of("Nodes");
        assert_eq!(trouble(&cache), "the watch on Nodes is not open yet");
        cache.listed(vec![node("a", "1")]);
        assert_eq!(trouble(&cache), "");
        cache.broke("connection refused");
        advance(Duration::from_secs(3)).await;
        cache.broke("503");
        assert_eq!(trouble(&cache), "the watch on Nodes has been broken for 3.0 s: 503");
        cache.heard();
        assert_eq!(trouble(&cache), "");
        advance(SILENT).await;
        assert_eq!(trouble(&cache), "");
        advance(Duration::from_secs(1)).await;
        assert_eq!(trouble(&cache), "the watch on Nodes is behind: it has received nothing for 151 s");
        cache.changed(Change::Applied, node("a", "2"));
        assert_eq!(trouble(&cache), "");
    }
}
