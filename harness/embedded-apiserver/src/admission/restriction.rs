//! The objects that a kubelet may write: its own node, and pods that are bound to it.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/admission/noderestriction`.

use embedded_objects::kinds::Kind;
use embedded_objects::status::{self, Status};
use serde_json::Value;

use crate::write::Write;
use embedded_state::auth::node::node_of;

/// The prefix of labels that a kubelet must not set.
const RESERVED: &str = "node-restriction.kubernetes.io/";

/// Labels below `kubernetes.io` that a kubelet may set on its node.
const OWN_LABELS: [&str; 8] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
];

/// Checks a creation (`old` absent), a change, or a deletion (`new` absent).
pub(super) fn check(
    write: &Write<'_>,
    kind: &'static Kind,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(), Status> {
    let Some(node) = node_of(write.user) else { return Ok(()) };
    let Some(object) = new.or(old) else { return Ok(()) };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let refuse = |why: String| Err(status::forbidden(kind, name, &why));
    match (kind.resource().as_str(), old, new) {
        ("nodes", _, None) | ("nodes", _, Some(_)) if name != node => {
            refuse(format!("node {node:?} is not allowed to modify node {name:?}"))
        }
        ("nodes", old, Some(new)) => {
            if let Some(old) = old
                && old["spec"]["taints"] != new["spec"]["taints"]
            {
                return refuse(format!("node {node:?} is not allowed to modify taints"));
            }
            let changed = changed_labels(old, new);
            if !changed.is_empty() {
                return refuse(format!("is not allowed to modify labels: {}", changed.join(", ")));
            }
            Ok(())
        }
        ("pods", None, Some(pod)) => {
            if pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
                return refuse(format!(
                    "pod does not have \"kubernetes.io/config.mirror\" annotation, node {node:?} can only create mirror pods"
                ));
            }
            if pod["spec"]["nodeName"] != node {
                return refuse(format!(
                    "node {node:?} can only create pods with spec.nodeName set to itself"
                ));
            }
            Ok(())
        }
        ("pods", Some(pod), None) if pod["spec"]["nodeName"] != node => {
            refuse(format!("node {node:?} can only delete pods with spec.nodeName set to itself"))
        }
        ("leases.coordination.k8s.io", ..) if name != node => {
            refuse("can only access node lease with the same name as the requesting node".into())
        }
        ("csinodes.storage.k8s.io", ..) if name != node => {
            refuse("can only access CSINode with the same name as the requesting node".into())
        }
        _ => Ok(()),
    }
}

/// Checks a change of a status: a kubelet may change that of its own node and of pods that are bound to it.
pub(super) fn check_status(
    write: &Write<'_>,
    kind: &'static Kind,
    old: &Value,
    new: &Value,
) -> Result<(), Status> {
    match (kind.resource().as_str(), node_of(write.user)) {
        ("nodes", _) => check(write, kind, Some(old), Some(new)),
        ("pods", Some(node)) if old["spec"]["nodeName"] != node => {
            let name = old["metadata"]["name"].as_str().unwrap_or_default();
            let why =
                format!("node {node:?} can only update pod status for pods with spec.nodeName set to itself");
            Err(status::forbidden(kind, name, &why))
        }
        _ => Ok(()),
    }
}

/// The changed labels that a kubelet must not set, in order.
fn changed_labels(old: Option<&Value>, new: &Value) -> Vec<String> {
    let none = serde_json::Map::new();
    let labels = |object: Option<&'_ Value>| {
        object
            .and_then(|object| object["metadata"]["labels"].as_object())
            .cloned()
            .unwrap_or_else(|| none.clone())
    };
    let (before, after) = (labels(old), labels(Some(new)));
    let mut changed: Vec<String> = before
        .keys()
        .chain(after.keys())
        .filter(|key| before.get(*key) != after.get(*key) && !may_set(key))
        .cloned()
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

fn may_set(label: &str) -> bool {
    if label.starts_with(RESERVED) || label.contains(&format!(".{RESERVED}")) {
        return false;
    }
    let Some((prefix, _)) = label.split_once('/') else { return true };
    let ours = |domain: &str| prefix == domain || prefix.ends_with(&format!(".{domain}"));
    if !ours("kubernetes.io") && !ours("k8s.io") {
        return true;
    }
    OWN_LABELS.contains(&label)
        || ["kubelet.kubernetes.io", "node.kubernetes.io"].iter().any(|own| ours(own))
        || label.starts_with("topology.kubernetes.io/")
        || label.starts_with("failure-domain.beta.kubernetes.io/")
}
