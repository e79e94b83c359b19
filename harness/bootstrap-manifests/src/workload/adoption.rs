//! ReplicaSets that find their replicas instead of creating them.

use super::hindrance::Hindrance;
use super::kind::WorkloadKind;
use super::pods::Workload;
use super::refs::Stage;
use super::selector::{Selector, labels};
use crate::manifest::{Object, Objects};

/// Pods of the manifests that a ReplicaSet takes for its own replicas, because its selector matches them and they have no
/// controller (`pkg/controller/replicaset`, `claimPods`).
pub(super) fn adopted(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let object = &objects.all[workload.object?];
    let selector = match (workload.kind, object.kind.as_str()) {
        (WorkloadKind::ReplicaSet, "ReplicaSet") => Selector::read(object.node.at(&["spec", "selector"])),
        _ => None,
    }?;
    let alone = |pod: &&Object| {
        pod.namespace == object.namespace
            && pod.node.at(&["metadata", "ownerReferences"]).is_none()
            && selector.chooses(&labels(pod.node.at(&["metadata", "labels"])))
    };
    let pods: Vec<&Object> = objects.of_kind("Pod").filter(alone).collect();
    let enough = u32::try_from(pods.len()).is_ok_and(|count| count >= workload.replicas);
    let first = pods.first().filter(|_| enough && workload.replicas > 0)?;
    Some(Hindrance::new(
        Stage::Creation,
        format!(
            "Pod/{} matches its selector and counts as its replica, so that it creates no other",
            first.name
        ),
        first.at(),
        format!("give Pod/{} other labels", first.name),
    ))
}
