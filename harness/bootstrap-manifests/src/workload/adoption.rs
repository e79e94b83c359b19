//! Pods that controllers take for their own.

use super::hindrance::Hindrance;
use super::kind::WorkloadKind;
use super::pods::Workload;
use super::refs::Stage;
use super::selector::{Selector, labels};
use crate::manifest::{Object, Objects};

/// The selector of kubeadm's DaemonSet kube-proxy (`cmd/kubeadm/app/phases/addons/proxy/manifests.go`).
const OF_KUBE_PROXY: (&str, &str) = ("k8s-app", "kube-proxy");

/// What keeps the Pods of a workload from being created or from staying, because a controller takes a Pod for its own.
pub(super) fn adopted(objects: &Objects, workload: &Workload) -> Option<Hindrance> {
    let object = &objects.all[workload.object?];
    match (workload.kind, object.kind.as_str()) {
        (WorkloadKind::ReplicaSet, "ReplicaSet") => counted(objects, object, workload),
        (WorkloadKind::Pod, _) => deleted(object, workload),
        _ => None,
    }
}

/// A Pod that the DaemonSet kube-proxy adopts, and deletes as the younger of two on one Node (`podsShouldBeOnNode`).
fn deleted(object: &Object, workload: &Workload) -> Option<Hindrance> {
    let (key, value) = OF_KUBE_PROXY;
    let is_its = object.namespace == "kube-system"
        && object.node.at(&["metadata", "ownerReferences"]).is_none()
        && workload.labels.get(key).is_some_and(|own| own == value);
    is_its.then(|| {
        Hindrance::new(
            Stage::Creation,
            format!("the DaemonSet kube-proxy takes it for its own because of the label {key}: {value}, and deletes it"),
            object.at(),
            format!("remove the label {key}: {value}"),
        )
    })
}

/// Pods of the manifests that a ReplicaSet takes for its own replicas, because its selector matches them and they have no
/// controller (`pkg/controller/replicaset`, `claimPods`).
fn counted(objects: &Objects, object: &Object, workload: &Workload) -> Option<Hindrance> {
    let selector = Selector::read(object.node.at(&["spec", "selector"]))?;
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
