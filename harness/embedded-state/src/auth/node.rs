//! The rights of kubelets: the node authorizer, which allows a node to read only what its own pods need.
//!
//! Follows `k8s.io/kubernetes/plugin/pkg/auth/authorizer/node`.

use serde_json::Value;

use super::attributes::{Attributes, Decision};
use super::rbac::Rule;
use super::user::User;
use crate::store::Store;

/// The prefix of a node's user name.
const PREFIX: &str = "system:node:";

/// The name of the node, if this user is a node.
#[must_use]
pub fn node_of(user: &User) -> Option<&str> {
    if user.in_group("system:nodes") { user.name.strip_prefix(PREFIX) } else { None }
}

/// Whether the node authorizer allows the request; it has no opinion on users who are not nodes.
///
/// `rules` are those of the cluster role `system:node`, for everything that does not depend on the node.
#[must_use]
pub fn decide(store: &Store, rules: &[Rule], user: &User, request: &Attributes) -> Decision {
    let Some(node) = node_of(user) else { return Decision::NoOpinion(String::new()) };
    if node.is_empty() {
        return Decision::NoOpinion(format!("unknown node for user {:?}", user.name));
    }
    let reads = matches!(request.verb.as_str(), "get" | "list" | "watch");
    let resource = match request.group.as_str() {
        "" => request.resource.clone(),
        group => format!("{}.{group}", request.resource),
    };
    let verb = request.verb.as_str();
    let refused = match (resource.as_str(), request.subresource.as_str()) {
        ("secrets" | "configmaps", "") if !reads => "can only read resources of this type".into(),
        ("secrets" | "configmaps", "") if request.namespace.is_empty() => {
            "can only read namespaced object of this type".into()
        }
        ("secrets" | "configmaps", "") => return related(store, node, request),
        ("secrets" | "configmaps", _) => "cannot read subresource".into(),
        ("persistentvolumeclaims" | "persistentvolumes", "") if verb == "get" => {
            return related(store, node, request);
        }
        ("persistentvolumeclaims" | "persistentvolumes", "") => {
            "can only get individual resources of this type".into()
        }
        ("serviceaccounts", "") if verb == "get" => return related(store, node, request),
        ("serviceaccounts", "token") if verb == "create" && !request.name.is_empty() => {
            return related(store, node, request);
        }
        ("serviceaccounts", _) => "can only create tokens for individual service accounts".into(),
        ("leases.coordination.k8s.io", _) => {
            if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
                "can only get, create, update, patch, or delete a node lease".into()
            } else if request.namespace != "kube-node-lease" {
                "can only access leases in the \"kube-node-lease\" system namespace".into()
            } else if verb != "create" && request.name != node {
                "can only access node lease with the same name as the requesting node".into()
            } else {
                return Decision::Allow(String::new());
            }
        }
        ("csinodes.storage.k8s.io", "") => {
            if !matches!(verb, "get" | "create" | "update" | "patch" | "delete") {
                "can only get, create, update, patch, or delete a CSINode".into()
            } else if verb != "create" && request.name != node {
                "can only access CSINode with the same name as the requesting node".into()
            } else {
                return Decision::Allow(String::new());
            }
        }
        ("nodes", "") if reads && request.name.is_empty() => {
            format!("node '{node}' cannot read all nodes, only its own Node object")
        }
        ("nodes", "") if reads && request.name != node => {
            format!("node '{node}' cannot read '{}', only its own Node object", request.name)
        }
        ("pods", "") if verb == "get" => return pod_of_node(store, node, request),
        ("pods", "") if reads && !selects_node(&request.field_selector, node) => {
            "can only list/watch pods with spec.nodeName field selector".into()
        }
        _ if rules.iter().any(|rule| rule.allows(request)) => return Decision::Allow(String::new()),
        _ => String::new(),
    };
    Decision::NoOpinion(refused)
}

fn selects_node(selector: &str, node: &str) -> bool {
    selector.split(',').any(|term| {
        let parts = term.split_once("==").or_else(|| term.split_once('='));
        parts == Some(("spec.nodeName", node))
    })
}

fn no_relationship(node: &str) -> Decision {
    Decision::NoOpinion(format!("no relationship found between node '{node}' and this object"))
}

fn pod_of_node(store: &Store, node: &str, request: &Attributes) -> Decision {
    let key = crate::store::Key::new(&request.namespace, &request.name);
    match store.get("pods", &key) {
        Some(pod) if pod.value()["spec"]["nodeName"] == node => Decision::Allow(String::new()),
        _ => no_relationship(node),
    }
}

/// Allowed if a pod of the node refers to the object.
fn related(store: &Store, node: &str, request: &Attributes) -> Decision {
    if request.name.is_empty() {
        return Decision::NoOpinion("No Object name found".into());
    }
    let pods = store.snapshot("pods");
    let namespace = Some(request.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let refers = pods.iter(namespace, None).any(|record| {
        record.field("spec.nodeName") == node
            && refers_to(&record.value()["spec"], &request.resource, &request.name)
    });
    if refers { Decision::Allow(String::new()) } else { no_relationship(node) }
}

fn refers_to(spec: &Value, resource: &str, name: &str) -> bool {
    match resource {
        "serviceaccounts" => spec["serviceAccountName"] == name,
        // References to each kind are in members with one name, wherever in the pod.
        "secrets" => {
            mentions(spec, &["secret", "secretRef", "secretKeyRef"], &["secretName", "name"], name)
                || mentions_in_list(&spec["imagePullSecrets"], name)
        }
        "configmaps" => mentions(spec, &["configMap", "configMapRef", "configMapKeyRef"], &["name"], name),
        "persistentvolumeclaims" => mentions(spec, &["persistentVolumeClaim"], &["claimName"], name),
        _ => false,
    }
}

fn mentions_in_list(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|one| one["name"] == name))
}

fn mentions(value: &Value, members: &[&str], keys: &[&str], name: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(member, value)| {
            (members.contains(&member.as_str()) && keys.iter().any(|key| value[*key] == name))
                || mentions(value, members, keys, name)
        }),
        Value::Array(list) => list.iter().any(|value| mentions(value, members, keys, name)),
        _ => false,
    }
}
