//! The garbage collector: owned objects are deleted after their owner or before it, or are released.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;

use super::graph::{Deed, FOREGROUND, Id, ORPHAN, Vertex};
use super::kinds::Kinds;
use embedded_runtime::cache::{Cache, Key, Kind};
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

struct Collector {
    kinds: Arc<Kinds>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Id>> = Queue::new();
    let kinds = Kinds::new(world.client(), world.tasks.clone(), queue.clone());
    register(&world.nodes, &kinds, false);
    register(&world.leases, &kinds, true);
    register(&world.pods, &kinds, true);
    register(&world.services, &kinds, true);
    register(&world.endpoints, &kinds, true);
    register(&world.slices, &kinds, true);
    register(&world.deployments, &kinds, true);
    register(&world.replica_sets, &kinds, true);
    register(&world.stateful_sets, &kinds, true);
    register(&world.daemon_sets, &kinds, true);
    register(&world.config_maps, &kinds, true);
    register(&world.secrets, &kinds, true);
    register(&world.service_accounts, &kinds, true);
    kinds.follow();
    let collector = Arc::new(Collector { kinds });
    let known = world.clone();
    queue.spawn(&world.tasks, "garbage-collector", 4, move |id| {
        let (collector, world) = (collector.clone(), known.clone());
        async move {
            // Before all objects are known, an owner may only seem to be missing.
            world.synced().await;
            collector.kinds.synced().await;
            collector.look(&id).await
        }
    });
}

fn register<K: Kind>(cache: &Arc<Cache<K>>, kinds: &Arc<Kinds>, namespaced: bool) {
    let kind = kinds.add(ApiResource::erase::<K>(&()), namespaced);
    let kinds = kinds.clone();
    cache.on_change(move |before, after| {
        let Some(object) = after.or(before) else { return };
        let id = Id { kind, key: Key::of(object.as_ref()) };
        kinds.tell(id, after.map(|object| Vertex::of(object.meta())));
    });
}

impl Collector {
    async fn look(&self, id: &Id) -> Outcome {
        let (vertex, deed) = {
            let graph = self.kinds.graph();
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

    /// Asks the API server itself, because the cache may be out of date.
    async fn all_gone(&self, owners: &[OwnerReference], namespace: &str) -> Result<bool, kube::Error> {
        for owner in owners {
            // An owner whose kind is not served counts as existing.
            let Some(api) = self.kinds.api_of(owner, namespace) else { return Ok(false) };
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
            let graph = self.kinds.graph();
            let Some(vertex) = graph.get(id) else { return Ok(()) };
            (vertex.uid.clone(), graph.owns(&vertex.uid), vertex.deleting)
        };
        let Some(api) = self.kinds.api(id).filter(|_| !deleting) else { return Ok(()) };
        let mut how = if owns { DeleteParams::foreground() } else { DeleteParams::background() };
        how.preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
        match api.delete(&id.key.name, &how).await {
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn drop_finalizer(&self, id: &Id, vertex: &Vertex, finalizer: &str) -> Result<(), kube::Error> {
        let Some(api) = self.kinds.api(id) else { return Ok(()) };
        let left: Vec<_> = vertex.finalizers.iter().filter(|one| *one != finalizer).collect();
        let change =
            json!({"metadata": {"finalizers": left, "resourceVersion": vertex.version, "uid": vertex.uid}});
        match api.patch_metadata(&id.key.name, &PatchParams::default(), &Patch::Merge(change)).await {
            Err(error) if writing::is_not_found(&error) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn let_go(&self, id: &Id, owner: &str) -> Result<(), kube::Error> {
        let Some(api) = self.kinds.api(id) else { return Ok(()) };
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
