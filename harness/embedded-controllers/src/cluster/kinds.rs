//! The kinds whose objects the garbage collector follows: everything that the API server serves, including
//! custom resources.
//!
//! The objects that controllers watch anyway come from their caches. Of all others only the metadata is
//! watched. Follows `k8s.io/kubernetes/pkg/controller/garbagecollector` (`Sync` and `resyncMonitors`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::discovery::{Discovery, Scope, verbs};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::graph::{Graph, Id, Vertex};
use embedded_runtime::cache::Key;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::tasks::Tasks;

/// How often the kinds are discovered if no definition changes: the kinds of an aggregated API server can
/// change without one.
const AGAIN: Duration = Duration::from_secs(30);

/// A kind that is followed.
#[derive(Clone)]
struct Followed {
    resource: ApiResource,
    namespaced: bool,
    /// Ends the watch; `None` if a controller's cache is the source.
    stop: Option<CancellationToken>,
}

/// The followed kinds, and the known facts about their objects.
pub(super) struct Kinds {
    client: Client,
    tasks: Tasks,
    /// An [`Id`] holds the index of its kind; kinds that are not served any more keep their index.
    all: Mutex<Vec<Followed>>,
    graph: Mutex<Graph>,
    /// The objects to process.
    queue: Arc<Queue<Id>>,
    /// Triggers a discovery of the kinds.
    discovery: Arc<Queue<()>>,
    /// How many lists are still missing; `None` before the kinds are known.
    missing: watch::Sender<Option<usize>>,
}

/// Whether objects of a kind can own others or be owned. Real collectors leave out Events, too.
fn is_followed(resource: &ApiResource) -> bool {
    resource.kind != "Event" || !matches!(resource.group.as_str(), "" | "events.k8s.io")
}

fn is_definition(resource: &ApiResource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.kind == "CustomResourceDefinition"
}

/// The part of a kind that no controller's cache contains; `None` if one contains all of it.
fn rest_of(resource: &ApiResource, of_caches: &[ApiResource]) -> Option<watcher::Config> {
    let config = watcher::Config::default();
    if !of_caches.iter().any(|known| known.group == resource.group && known.plural == resource.plural) {
        return Some(config);
    }
    // Controllers only need the Leases of kubelets.
    (resource.plural == "leases").then(|| config.fields("metadata.namespace!=kube-node-lease"))
}

impl Kinds {
    pub(super) fn new(client: Client, tasks: Tasks, queue: Arc<Queue<Id>>) -> Arc<Self> {
        let (all, graph) = (Mutex::default(), Mutex::default());
        let discovery = Queue::new();
        Arc::new(Self { client, tasks, all, graph, queue, discovery, missing: watch::Sender::new(None) })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Followed>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a kind whose objects come from a controller's cache; returns its index.
    pub(super) fn add(&self, resource: ApiResource, namespaced: bool) -> usize {
        let mut all = self.all();
        all.push(Followed { resource, namespaced, stop: None });
        all.len() - 1
    }

    /// Reports that an object of a kind was added, changed or removed.
    pub(super) fn tell(&self, id: Id, vertex: Option<Vertex>) {
        let mut graph = self.graph();
        let concerned = match vertex {
            Some(vertex) => graph.put(id, vertex),
            None => graph.remove(&id),
        };
        concerned.into_iter().for_each(|id| self.queue.add(id));
    }

    /// The API of an object.
    pub(super) fn api(&self, id: &Id) -> Option<Api<DynamicObject>> {
        let kind = self.all().get(id.kind)?.clone();
        Some(self.api_in(&kind, &id.key.namespace))
    }

    /// The API of an owner, for objects in this namespace. `None` if its kind is not followed, or if the
    /// owner is namespaced and the object is not: then its existence cannot be determined.
    pub(super) fn api_of(&self, owner: &OwnerReference, namespace: &str) -> Option<Api<DynamicObject>> {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let is = |kind: &&Followed| {
            // A kind that is not served in one version any more may be served in another.
            let is_followed = kind.stop.as_ref().is_none_or(|stop| !stop.is_cancelled());
            is_followed && kind.resource.kind == owner.kind && kind.resource.group == group
        };
        let kind = self.all().iter().rfind(is)?.clone();
        (!kind.namespaced || !namespace.is_empty()).then(|| self.api_in(&kind, namespace))
    }

    fn api_in(&self, kind: &Followed, namespace: &str) -> Api<DynamicObject> {
        if kind.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &kind.resource)
        } else {
            Api::all_with(self.client.clone(), &kind.resource)
        }
    }

    /// Waits until all objects of all kinds are known: before that, an owner may only seem to own nothing.
    pub(super) async fn synced(&self) {
        // The sender lives as long as `self`, so this wait cannot fail.
        let _ = self.missing.subscribe().wait_for(|missing| *missing == Some(0)).await;
    }

    /// Starts to follow everything that the API server serves.
    pub(super) fn follow(self: &Arc<Self>) {
        let own = self.clone();
        self.discovery.add(());
        self.discovery.spawn(&self.tasks, "garbage-collector-discovery", 1, move |()| {
            let own = own.clone();
            async move { own.discover().await }
        });
    }

    fn one_more(&self) {
        self.missing.send_modify(|missing| *missing = Some(missing.unwrap_or(0) + 1));
    }

    fn one_less(&self) {
        self.missing.send_modify(|missing| *missing = missing.map(|count| count.saturating_sub(1)));
    }

    async fn discover(self: Arc<Self>) -> Outcome {
        let discovered = Discovery::new(self.client.clone()).run_aggregated().await?;
        let mut served = Vec::new();
        for (resource, capabilities) in discovered.groups().flat_map(|group| group.resources_by_stability()) {
            let needed = [verbs::LIST, verbs::WATCH, verbs::DELETE];
            if is_followed(&resource) && needed.iter().all(|verb| capabilities.supports_operation(verb)) {
                served.push((resource, capabilities.scope == Scope::Namespaced));
            }
        }
        // Counts as a missing list, until all others are counted.
        self.one_more();
        self.follow_only(&served);
        self.one_less();
        Ok(Next::After(AGAIN))
    }

    /// Starts to watch new kinds, and removes those that are not served any more.
    fn follow_only(self: &Arc<Self>, served: &[(ApiResource, bool)]) {
        let mut all = self.all();
        let of_caches: Vec<_> =
            all.iter().filter(|kind| kind.stop.is_none()).map(|kind| kind.resource.clone()).collect();
        let is_followed = |kind: &Followed| kind.stop.as_ref().is_some_and(|stop| !stop.is_cancelled());
        for (index, kind) in all.iter().enumerate().filter(|(_, kind)| is_followed(kind)) {
            if !served.iter().any(|(resource, _)| *resource == kind.resource) {
                kind.stop.iter().for_each(CancellationToken::cancel);
                let ids = self.graph().of_kind(index);
                ids.into_iter().for_each(|id| self.tell(id, None));
            }
        }
        for (resource, namespaced) in served {
            let Some(config) = rest_of(resource, &of_caches) else { continue };
            if all.iter().any(|kind| is_followed(kind) && kind.resource == *resource) {
                continue;
            }
            let stop = self.tasks.stopping().child_token();
            let kind =
                Followed { resource: resource.clone(), namespaced: *namespaced, stop: Some(stop.clone()) };
            let index = match all.iter().position(|one| one.resource == *resource && one.stop.is_some()) {
                Some(known) => {
                    if let Some(before) = all.get_mut(known) {
                        *before = kind;
                    }
                    known
                }
                None => {
                    all.push(kind);
                    all.len() - 1
                }
            };
            self.one_more();
            let (own, resource) = (self.clone(), resource.clone());
            self.tasks.spawn(async move { own.watch(index, resource, config, stop).await });
        }
    }

    /// Follows the objects of one kind until it is not served any more.
    async fn watch(
        &self,
        index: usize,
        resource: ApiResource,
        config: watcher::Config,
        stop: CancellationToken,
    ) {
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(self.client.clone(), &resource);
        let mut events = std::pin::pin!(watcher(api, config.any_semantic()).default_backoff());
        let id = |object: &PartialObjectMeta<DynamicObject>| Id {
            kind: index,
            key: Key {
                namespace: object.metadata.namespace.clone().unwrap_or_default(),
                name: object.metadata.name.clone().unwrap_or_default(),
            },
        };
        let (mut listed, mut first) = (HashSet::new(), true);
        let mut is_listed = || {
            if std::mem::take(&mut first) {
                self.one_less();
            }
        };
        loop {
            // An event of a kind that is not followed any more would leave its object behind.
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                event = events.next() => event,
            };
            let Some(event) = event else { break };
            let changes = match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    false
                }
                Ok(watcher::Event::InitApply(object)) => {
                    listed.insert(id(&object));
                    self.tell(id(&object), Some(Vertex::of(&object.metadata)));
                    true
                }
                Ok(watcher::Event::InitDone) => {
                    let known = self.graph().of_kind(index);
                    known.into_iter().filter(|id| !listed.contains(id)).for_each(|id| self.tell(id, None));
                    is_listed();
                    false
                }
                Ok(watcher::Event::Apply(object)) => {
                    self.tell(id(&object), Some(Vertex::of(&object.metadata)));
                    true
                }
                Ok(watcher::Event::Delete(object)) => {
                    self.tell(id(&object), None);
                    true
                }
                Err(error) => {
                    tracing::debug!(kind = resource.kind, %error, "the watch will be started again");
                    // A kind that cannot be listed must not hold up everything else; a temporary error is retried.
                    if is_refused(&error) {
                        is_listed();
                    }
                    false
                }
            };
            if changes && is_definition(&resource) {
                self.discovery.add(());
            }
        }
        is_listed();
    }
}

/// Whether the API server will never list a kind.
fn is_refused(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code,
        _ => return false,
    };
    [403, 404, 405].contains(&code)
}
