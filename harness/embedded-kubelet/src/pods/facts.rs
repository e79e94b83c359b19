//! The facts that a kubelet knows when it starts a container: the Pod, its node, and the objects that the Pod
//! refers to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, ResourceFieldSelector, Secret};
use kube::ResourceExt;

use embedded_runtime::quantities;

/// The reason why a container cannot be configured; the text is the kubelet's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

/// Reads the objects of the Pod's namespace.
pub(crate) trait Objects {
    fn config_map(&self, name: &str) -> Option<Arc<ConfigMap>>;
    fn secret(&self, name: &str) -> Option<Arc<Secret>>;
}

/// The known facts about a Pod's environment.
pub(crate) struct Facts<'a> {
    pub(crate) pod: &'a Pod,
    /// The node's addresses, at most one of each family; empty if the Node has none yet.
    pub(crate) host_ips: &'a [IpAddr],
    /// The Node's addresses as the kubelet shows them in an error.
    pub(crate) known_addresses: String,
    pub(crate) pod_ips: &'a [IpAddr],
    pub(crate) allocatable: &'a BTreeMap<String, String>,
    pub(crate) objects: &'a dyn Objects,
}

impl Facts<'_> {
    /// The value of a field of the Pod.
    pub(crate) fn field(&self, path: &str) -> Result<String, Refusal> {
        let pod = self.pod;
        let spec = pod.spec.as_ref();
        Ok(match path {
            "metadata.name" => pod.name_any(),
            "metadata.namespace" => pod.namespace().unwrap_or_default(),
            "metadata.uid" => pod.uid().unwrap_or_default(),
            "metadata.labels" => listed(pod.labels()),
            "metadata.annotations" => listed(pod.annotations()),
            "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            "spec.serviceAccountName" => {
                spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
            }
            "status.hostIP" | "status.hostIPs" if self.host_ips.is_empty() => {
                return Err(Refusal(format!("host IP unknown; known addresses: [{}]", self.known_addresses)));
            }
            "status.hostIP" => first(self.host_ips),
            "status.hostIPs" => joined(self.host_ips),
            "status.podIP" => first(self.pod_ips),
            "status.podIPs" => joined(self.pod_ips),
            other => {
                let subscript = |prefix: &str| {
                    other.strip_prefix(prefix)?.strip_prefix("['")?.strip_suffix("']").map(str::to_owned)
                };
                if let Some(key) = subscript("metadata.labels") {
                    pod.labels().get(&key).cloned().unwrap_or_default()
                } else if let Some(key) = subscript("metadata.annotations") {
                    pod.annotations().get(&key).cloned().unwrap_or_default()
                } else {
                    return Err(Refusal(format!("unsupported fieldPath: {other}")));
                }
            }
        })
    }

    /// A request or limit of a container, divided and rounded up. A limit that is not set is the node's capacity.
    pub(crate) fn resource(
        &self,
        selector: &ResourceFieldSelector,
        own: Option<&Container>,
    ) -> Result<String, Refusal> {
        let containers = self.pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let container = match &selector.container_name {
            Some(name) if !name.is_empty() => containers.iter().find(|container| container.name == *name),
            _ => own,
        };
        let Some(container) = container else {
            return Err(Refusal(format!(
                "container {} not found",
                selector.container_name.as_deref().unwrap_or_default()
            )));
        };
        let Some((kind, name)) = selector.resource.split_once('.') else {
            return Err(Refusal(format!("unsupported container resource : {}", selector.resource)));
        };
        let resources = container.resources.as_ref();
        let amount = match kind {
            "limits" => resources
                .and_then(|all| all.limits.as_ref()?.get(name))
                .map(|amount| amount.0.clone())
                .or_else(|| self.allocatable.get(name).cloned()),
            "requests" => {
                resources.and_then(|all| all.requests.as_ref()?.get(name)).map(|amount| amount.0.clone())
            }
            _ => return Err(Refusal(format!("unsupported container resource : {}", selector.resource))),
        }
        .unwrap_or_else(|| "0".to_owned());
        let divisor = selector.divisor.as_ref().map_or("1", |divisor| divisor.0.as_str());
        match quantities::divided(&amount, divisor) {
            Some(value) => Ok(value.to_string()),
            None => Err(Refusal(format!("cannot divide {amount} by {divisor}"))),
        }
    }

    /// A ConfigMap that the Pod refers to; `None` if it is optional and missing.
    pub(crate) fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<Arc<ConfigMap>>, Refusal> {
        match self.objects.config_map(name) {
            Some(found) => Ok(Some(found)),
            None if optional == Some(true) => Ok(None),
            None => Err(Refusal(format!("configmap {name:?} not found"))),
        }
    }

    /// A Secret that the Pod refers to; `None` if it is optional and missing.
    pub(crate) fn secret(&self, name: &str, optional: Option<bool>) -> Result<Option<Arc<Secret>>, Refusal> {
        match self.objects.secret(name) {
            Some(found) => Ok(Some(found)),
            None if optional == Some(true) => Ok(None),
            None => Err(Refusal(format!("secret {name:?} not found"))),
        }
    }
}

fn first(ips: &[IpAddr]) -> String {
    ips.first().map(IpAddr::to_string).unwrap_or_default()
}

fn joined(ips: &[IpAddr]) -> String {
    ips.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

/// Formats labels or annotations as in a downward API file.
fn listed(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}
