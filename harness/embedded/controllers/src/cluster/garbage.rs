//! The garbage collector: what is owned goes with its owner, before it, or is let go.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::graph::{Deed, FOREGROUND, Graph, Id, ORPHAN, Vertex};
use crate::cache::{Cache, Key, Kind};
use crate::queue::{Next, Outcome, Queue};
use crate::world::World;
use crate::writing;

struct Collector {
    client: Client,
    graph: Arc<Mutex<Graph>>,
    kinds: Vec<ApiResource>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<World>) {
    let graph = Arc::new(Mutex::new(Graph::default()));
    let queue: Arc<Queue<Id>> = Queue::new();
    let mut kinds = Vec::new();
    register(&world.nodes, &mut kinds, &graph, &queue);
    register(&world.leases, &mut kinds, &graph, &queue);
    register(&world.pods, &mut kinds, &graph, &queue);
    register(&world.services, &mut kinds, &graph, &queue);
    register(&world.endpoints, &mut kinds, &graph, &queue);
    register(&world.slices, &mut kinds, &graph, &queue);
    register(&world.deployments, &mut kinds, &graph, &queue);
    register(&world.replica_sets, &mut kinds, &graph, &queue);
    register(&world.stateful_sets, &mut kinds, &graph, &queue);
    register(&world.daemon_sets, &mut kinds, &graph, &queue);
    register(&world.config_maps, &mut kinds, &graph, &queue);
    register(&world.secrets, &mut kinds, &graph, &queue);
    register(&world.service_accounts, &mut kinds, &graph, &queue);
    let collector = Arc::new(Collector { client: world.client(), graph, kinds });
    let known = world.clone();
    queue.spawn(&world.tasks, "garbage-collector", 4, move |id| {
        let (collector, world) = (collector.clone(), known.clone());
        async move {
            // Before everything is known, an owner may only seem to be missing.
            world.synced().await;
            collector.look(&id).await
        }
    });
}

fn register<K: Kind>(
    cache: &Arc<Cache<K>>,
    kinds: &mut Vec<ApiResource>,
    graph: &Arc<Mutex<Graph>>,
    queue: &Arc<Queue<Id>>,
) {
    let kind = kinds.len();
    kinds.push(ApiResource::erase::<K>(&()));
    let (graph, queue) = (graph.clone(), queue.clone());
    cache.on_change(move |before, after| {
        let Some(object) = after.or(before) else { return };
        let id = Id { kind, key: Key::of(object.as_ref()) };
        let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
        let concerned = match after {
            Some(object) => graph.put(id, Vertex::of(object.meta())),
            None => graph.remove(&id),
        };
        concerned.into_iter().for_each(|id| queue.add(id));
    });
}

impl Collector {
    fn graph(&self) -> std::sync::MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn api(&self, id: &Id) -> Option<Api<DynamicObject>> {
        let kind = self.kinds.get(id.kind)?;
        Some(if id.key.namespace.is_empty() {
            Api::all_with(self.client.clone(), kind)
        } else {
            Api::namespaced_with(self.client.clone(), &id.key.namespace, kind)
        })
    }

    async fn look(&self, id: &Id) -> Outcome {
        let (vertex, deed) = {
            let graph = self.graph();
            let Some(vertex) = graph.get(id).cloned() else { return Ok(Next::Done) };
            (vertex, graph.deed(id))
        };
        match deed {
            Deed::Nothing => {}
            Deed::Foreground(owned) if owned.is_empty() => {
                self.drop_finalizer(id, &vertex, FOREGROUND).await?
            }
            Deed::Foreground(owned) => {
                for dependent in &owned {
                    self.delete(dependent).await?;
                }
            }
            Deed::Orphan(owned) => {
                for dependent in &owned {
                    self.let_go(dependent, &vertex.uid).await?;
                }
                self.drop_finalizer(id, &vertex, ORPHAN).await?;
            }
            Deed::Unowned(owners) => {
                if self.all_gone(&owners, &id.key.namespace).await? {
                    self.delete(id).await?;
                }
            }
        }
        Ok(Next::Done)
    }

    /// Asks the API server itself: what this process knows may be old.
    async fn all_gone(&self, owners: &[OwnerReference], namespace: &str) -> Result<bool, kube::Error> {
        for owner in owners {
            let known = self
                .kinds
                .iter()
                .find(|kind| kind.kind == owner.kind && kind.api_version == owner.api_version);
            // An owner of a kind nobody watches is taken for alive.
            let Some(kind) = known else { return Ok(false) };
            let cluster_scoped = owner.kind == "Node";
            let api: Api<DynamicObject> = if cluster_scoped {
                Api::all_with(self.client.clone(), kind)
            } else {
                Api::namespaced_with(self.client.clone(), namespace, kind)
            };
            if let Some(there) = api.get_metadata_opt(&owner.name).await?
                && there.metadata.uid.as_ref() == Some(&owner.uid)
            {
                let finalizers = there.metadata.finalizers.unwrap_or_default();
                let waits = there.metadata.deletion_timestamp.is_some()
                    && finalizers.iter().any(|one| one == FOREGROUND);
                if !waits {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn delete(&self, id: &Id) -> Result<(), kube::Error> {
        let (uid, owns, deleting) = {
            let graph = self.graph();
            let Some(vertex) = graph.get(id) else { return Ok(()) };
            (vertex.uid.clone(), graph.owns(&vertex.uid), vertex.deleting)
        };
        let Some(api) = self.api(id).filter(|_| !deleting) else { return Ok(()) };
        let mut how = if owns { DeleteParams::foreground() } else { DeleteParams::background() };
        how.preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
        match api.delete(&id.key.name, &how).await {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn drop_finalizer(&self, id: &Id, vertex: &Vertex, finalizer: &str) -> Result<(), kube::Error> {
        let Some(api) = self.api(id) else { return Ok(()) };
        let left: Vec<_> = vertex.finalizers.iter().filter(|one| *one != finalizer).collect();
        let change =
            json!({"metadata": {"finalizers": left, "resourceVersion": vertex.version, "uid": vertex.uid}});
        match api.patch_metadata(&id.key.name, &PatchParams::default(), &Patch::Merge(change)).await {
            Err(error) if writing::is_not_found(&error) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn let_go(&self, id: &Id, owner: &str) -> Result<(), kube::Error> {
        let Some(api) = self.api(id) else { return Ok(()) };
        let Some(there) = api.get_metadata_opt(&id.key.name).await? else { return Ok(()) };
        let left: Vec<_> = there.owner_references().iter().filter(|one| one.uid != owner).collect();
        let change =
            json!({"metadata": {"ownerReferences": left, "resourceVersion": there.resource_version()}});
        match api.patch_metadata(&id.key.name, &PatchParams::default(), &Patch::Merge(change)).await {
            Err(error) if writing::is_not_found(&error) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}
