//! Functions that read single facts of objects. Pure functions.

use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;

/// Whether the Node has a taint with this key, with any effect and value.
///
/// ```
/// use harness_core::objects::{T_UNINIT, has_taint};
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"spec": {"taints": [{"key": T_UNINIT, "effect": "NoSchedule"}]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert!(has_taint(&node, T_UNINIT));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn has_taint(node: &Node, key: &str) -> bool {
    taint_keys(node).iter().any(|k| k == key)
}

/// Keys of the Node's taints, in order.
pub fn taint_keys(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
    taints.into_iter().flatten().map(|t| t.key.clone()).collect()
}

/// The Node's taints as `key=value:effect`, in order; compares equal when content and order do.
///
/// ```
/// use harness_core::objects::taints;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"spec": {"taints": [{"key": "a", "value": "1", "effect": "NoSchedule"}]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(taints(&node), ["a=1:NoSchedule"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
    taints
        .into_iter()
        .flatten()
        .map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or(""), t.effect))
        .collect()
}

/// `spec.providerID`, if it is not empty.
///
/// ```
/// use harness_core::objects::provider_id;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"spec": {"providerID": "acme://1"}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(provider_id(&node).as_deref(), Some("acme://1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn provider_id(node: &Node) -> Option<String> {
    node.spec.as_ref().and_then(|s| s.provider_id.clone()).filter(|id| !id.is_empty())
}

/// A label's value.
///
/// ```
/// use harness_core::objects::{L_ZONE, label};
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"metadata": {"labels": {L_ZONE: "zone-1"}}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(label(&node, L_ZONE).as_deref(), Some("zone-1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn label(node: &Node, key: &str) -> Option<String> {
    node.labels().get(key).cloned()
}

/// `status.addresses` as `(type, address)`, in order.
///
/// ```
/// use harness_core::objects::addresses;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"status": {"addresses": [{"type": "Hostname", "address": "a"}]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(addresses(&node), [("Hostname".to_owned(), "a".to_owned())]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn addresses(node: &Node) -> Vec<(String, String)> {
    let addresses = node.status.as_ref().and_then(|s| s.addresses.as_ref());
    addresses.into_iter().flatten().map(|a| (a.type_.clone(), a.address.clone())).collect()
}

/// The Ready condition's status: `True`, `False`, `Unknown` or absent.
///
/// ```
/// use harness_core::objects::ready;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(ready(&node).as_deref(), Some("True"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().find(|c| c.type_ == "Ready").map(|c| c.status.clone())
}

/// Status and reason of a condition.
///
/// ```
/// use harness_core::objects::{C_NET, condition};
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"status": {"conditions": [{"type": C_NET, "status": "False", "reason": "RouteCreated"}]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(condition(&node, C_NET), Some(("False".to_owned(), "RouteCreated".to_owned())));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn condition(node: &Node, type_: &str) -> Option<(String, String)> {
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let found = conditions.into_iter().flatten().find(|c| c.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone().unwrap_or_default()))
}

/// `spec.podCIDRs`.
///
/// ```
/// use harness_core::objects::pod_cidrs;
/// # use k8s_openapi::api::core::v1::Node;
///
/// let node = serde_json::json!({"spec": {"podCIDRs": ["10.1.0.0/24"]}});
/// let node: Node = serde_json::from_value(node)?;
/// assert_eq!(pod_cidrs(&node), ["10.1.0.0/24"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn pod_cidrs(node: &Node) -> Vec<String> {
    node.spec.as_ref().and_then(|s| s.pod_cidrs.clone()).unwrap_or_default()
}

/// `status.loadBalancer.ingress` as `(ip, hostname)`.
///
/// ```
/// use harness_core::objects::ingress;
/// # use k8s_openapi::api::core::v1::Service;
///
/// let service = serde_json::json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}});
/// let service: Service = serde_json::from_value(service)?;
/// assert_eq!(ingress(&service), [(Some("203.0.113.1".to_owned()), None)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn ingress(service: &Service) -> Vec<(Option<String>, Option<String>)> {
    let status = service.status.as_ref().and_then(|s| s.load_balancer.as_ref());
    let ingress = status.and_then(|l| l.ingress.as_ref());
    ingress.into_iter().flatten().map(|i| (i.ip.clone(), i.hostname.clone())).collect()
}

/// The `ipMode` of each entry of `status.loadBalancer.ingress`, and whether the entry has an IP.
///
/// ```
/// use harness_core::objects::ip_modes;
/// # use k8s_openapi::api::core::v1::Service;
///
/// let service = serde_json::json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1", "ipMode": "VIP"}]}}});
/// let service: Service = serde_json::from_value(service)?;
/// assert_eq!(ip_modes(&service), [(true, Some("VIP".to_owned()))]);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
