//! Volumes and claims that are in use are not deleted: their finalizers are removed when nothing uses them
//! any more.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{Api, ResourceExt};
use serde_json::json;

use embedded_runtime::cache::{Cache, Key, Kind};
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

/// The finalizer of a claim, which stays while a Pod that has not ended uses it.
const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";
/// The finalizer of a volume, which stays while a claim is bound to it.
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";
/// The finalizer of a class, which stays while a volume or claim names it.
const OF_CLASSES: &str = "kubernetes.io/vac-protection";

/// The pause until an object in use is checked again, in case its user disappears without a visible change.
const AGAIN: Duration = Duration::from_secs(5);

/// The kinds of protected objects.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Protected {
    Claim(Key),
    Volume(Key),
    Class(Key),
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Protected>> = Queue::new();
    let own = queue.clone();
    world.claims.on_key(move |key| own.add(Protected::Claim(key)));
    let own = queue.clone();
    world.volumes.on_key(move |key| own.add(Protected::Volume(key)));
    let own = queue.clone();
    world.attributes_classes.on_key(move |key| own.add(Protected::Class(key)));
    let own = queue.clone();
    world.pods.on_change(move |before, after| {
        let pod = before.filter(|_| after.is_none_or(|pod| has_ended(pod)));
        for name in pod.into_iter().flat_map(|pod| claims_of(pod)) {
            let namespace = pod.and_then(|pod| pod.namespace()).unwrap_or_default();
            own.add(Protected::Claim(Key::new(&namespace, &name)));
        }
    });
    let world = world.clone();
    queue.clone().spawn(&world.tasks.clone(), "protection", 2, move |what| {
        let world = world.clone();
        async move { look(&world, &what).await }
    });
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The claims that a Pod names, and those that are created for its ephemeral volumes.
fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => Some(source.claim_name.clone()),
            (None, Some(_)) => Some(format!("{}-{}", pod.name_any(), volume.name)),
            (None, None) => None,
        })
        .collect()
}

async fn look(world: &ControllerContext, what: &Protected) -> Outcome {
    match what {
        Protected::Claim(key) => {
            let pods = world.pods.list_in(&key.namespace);
            let used = pods.iter().any(|pod| !has_ended(pod) && claims_of(pod).contains(&key.name));
            let api = writing::api_in(&world.client(), &key.namespace);
            release(&api, &world.claims, key, OF_CLAIMS, used).await
        }
        Protected::Volume(key) => {
            let phase = |volume: &PersistentVolume| volume.status.as_ref()?.phase.clone();
            let used = world.volumes.get(key).and_then(|volume| phase(&volume)).as_deref() == Some("Bound");
            release(&writing::api(&world.client()), &world.volumes, key, OF_VOLUMES, used).await
        }
        Protected::Class(key) => {
            let name = Some(key.name.as_str());
            let used = world.volumes.list().iter().any(|volume| class_of_volume(volume) == name)
                || world.claims.list().iter().any(|claim| classes_of_claim(claim).contains(&name));
            release(&writing::api(&world.client()), &world.attributes_classes, key, OF_CLASSES, used).await
        }
    }
}

fn class_of_volume(volume: &PersistentVolume) -> Option<&str> {
    volume.spec.as_ref()?.volume_attributes_class_name.as_deref()
}

fn classes_of_claim(claim: &PersistentVolumeClaim) -> [Option<&str>; 2] {
    let wanted = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let status = claim.status.as_ref();
    [wanted, status.and_then(|status| status.current_volume_attributes_class_name.as_deref())]
}

/// Removes the finalizer of an object that is being deleted, unless the object is used.
async fn release<K: Kind>(api: &Api<K>, cache: &Cache<K>, key: &Key, finalizer: &str, used: bool) -> Outcome {
    let Some(object) = cache.get(key) else { return Ok(Next::Done) };
    let held = object.finalizers().iter().any(|one| one == finalizer);
    if object.meta().deletion_timestamp.is_none() || !held {
        return Ok(Next::Done);
    }
    if used {
        return Ok(Next::After(AGAIN));
    }
    let kept: Vec<&String> = object.finalizers().iter().filter(|one| *one != finalizer).collect();
    let change = json!({"metadata": {"finalizers": kept}});
    match writing::merge_if_unchanged(api, cache, object.as_ref(), change).await {
        Err(error) if writing::is_not_found(&error) => Ok(Next::Done),
        other => other.map(|()| Next::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_uses_the_claims_it_names_and_those_made_for_it() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [], "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {}},
            {"name": "c", "emptyDir": {}}]}});
        let pod: Pod = serde_json::from_value(pod).expect("a Pod");
        assert_eq!(claims_of(&pod), ["data", "p-b"]);
    }
}
