//! Functions that workload controllers share: Pods from templates, ownership, hashes. Pure functions.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The characters of generated names, as in Kubernetes: without vowels and characters that look alike.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A reference that makes this object the owner and controller of another.
pub(super) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The uid of the controller of an object.
pub(super) fn controller_of<K: Resource>(object: &K) -> Option<&str> {
    object
        .meta()
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| owner.uid.as_str())
}

/// A Pod made from a template, owned by this object.
pub(super) fn pod<K: Resource<DynamicType = ()>>(owner: &K, template: Option<&PodTemplateSpec>) -> Pod {
    let meta = template.and_then(|template| template.metadata.as_ref());
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", owner.name_any())),
            namespace: owner.namespace(),
            labels: meta.and_then(|meta| meta.labels.clone()),
            annotations: meta.and_then(|meta| meta.annotations.clone()),
            finalizers: meta.and_then(|meta| meta.finalizers.clone()),
            owner_references: Some(vec![controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.and_then(|template| template.spec.clone()),
        status: None,
    }
}

/// A short name for a template: the same for the same template, another one after a collision.
pub(super) fn hash<T: Serialize>(template: &T, collisions: i32) -> String {
    // A template was read as JSON, so it can be written as JSON.
    let text = serde_json::to_vec(template).unwrap_or_default();
    let digest = Sha256::new().chain_update(text).chain_update(collisions.to_be_bytes()).finalize();
    digest.iter().take(10).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

/// Whether a Pod counts: it is not being deleted and has not ended.
pub(super) fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a Pod is ready, and since when (seconds of the epoch).
pub(super) fn ready_since(pod: &Pod) -> Option<i64> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready" && one.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(0, |time| time.0.as_second()))
}

/// Whether a Pod has been ready for long enough to count as available.
pub(super) fn is_available(pod: &Pod, min_ready_seconds: i32, now: i64) -> bool {
    ready_since(pod).is_some_and(|since| since.saturating_add(i64::from(min_ready_seconds)) <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_content_and_collisions() {
        let template = PodTemplateSpec::default();
        assert_eq!(hash(&template, 0), hash(&template.clone(), 0));
        assert_ne!(hash(&template, 0), hash(&template, 1));
        assert_eq!(hash(&template, 0).len(), 10);
        assert!(hash(&template, 0).bytes().all(|byte| LETTERS.contains(&byte)));
    }
}
