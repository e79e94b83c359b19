//! Functions that read single facts of objects. Pure functions.

use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;

/// Whether the Node has a taint with this key, with any effect and value.
pub fn has_taint(node: &Node, key: &str) -> bool {
    taint_keys(node).iter().any(|k| k == key)
}

/// Keys of the Node's taints, in order.
pub fn taint_keys(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
    taints.into_iter().flatten().map(|t| t.key.clone()).collect()
}

/// The Node's taints as `key=value:effect`, in order; compares equal when content and order do.
pub fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
    taints
        .into_iter()
        .flatten()
        .map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or(""), t.effect))
        .collect()
}

/// `spec.providerID`, if it is not empty.
pub fn provider_id(node: &Node) -> Option<String> {
    node.spec.as_ref().and_then(|s| s.provider_id.clone()).filter(|id| !id.is_empty())
}

/// A label's value.
pub fn label(node: &Node, key: &str) -> Option<String> {
    node.labels().get(key).cloned()
}

/// `status.addresses` as `(type, address)`, in order.
pub fn addresses(node: &Node) -> Vec<(String, String)> {
    let addresses = node.status.as_ref().and_then(|s| s.addresses.as_ref());
    addresses.into_iter().flatten().map(|a| (a.type_.clone(), a.address.clone())).collect()
}

/// The Ready condition's status: `True`, `False`, `Unknown` or absent.
pub fn ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().find(|c| c.type_ == "Ready").map(|c| c.status.clone())
}

/// Status and reason of a condition.
pub fn condition(node: &Node, type_: &str) -> Option<(String, String)> {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let found = conditions.into_iter().flatten().find(|c| c.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone().unwrap_or_default()))
}

/// `spec.podCIDRs`.
pub fn pod_cidrs(node: &Node) -> Vec<String> {
    node.spec.as_ref().and_then(|s| s.pod_cidrs.clone()).unwrap_or_default()
}

/// `status.loadBalancer.ingress` as `(ip, hostname)`.
pub fn ingress(service: &Service) -> Vec<(Option<String>, Option<String>)> {
    let status = service.status.as_ref().and_then(|s| s.load_balancer.as_ref());
    let ingress = status.and_then(|l| l.ingress.as_ref());
    ingress.into_iter().flatten().map(|i| (i.ip.clone(), i.hostname.clone())).collect()
}

/// The `ipMode` of each entry of `status.loadBalancer.ingress`, and whether the entry has an IP.
pub fn ip_modes(service: &Service) -> Vec<(bool, Option<String>)> {
    let status = service.status.as_ref().and_then(|s| s.load_balancer.as_ref());
    let ingress = status.and_then(|l| l.ingress.as_ref());
    ingress.into_iter().flatten().map(|i| (i.ip.is_some(), i.ip_mode.clone())).collect()
}

/// Whether the object has the finalizer.
pub fn has_finalizer(service: &Service, finalizer: &str) -> bool {
    service.finalizers().iter().any(|f| f == finalizer)
}

/// Whether the object is being deleted.
pub fn is_being_deleted(service: &Service) -> bool {
    service.metadata.deletion_timestamp.is_some()
}
