//! How Kubernetes objects are shown in a failure.

use super::literals::{B_REGION, B_TYPE, B_ZONE, C_NET, L_REGION, L_TYPE, L_ZONE};
use super::read::{addresses, condition, ingress, provider_id, ready, taints};
use crate::probe::Observed;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, Service};
use kube::ResourceExt;

/// Addresses as `Type address`, joined by commas.
///
/// ```
/// use harness_core::objects::show_addresses;
///
/// let list = [("InternalIP".to_owned(), "192.0.2.1".to_owned()), ("Hostname".to_owned(), "a".to_owned())];
/// assert_eq!(show_addresses(&list), "[InternalIP 192.0.2.1, Hostname a]");
/// ```
pub fn show_addresses(list: &[(String, String)]) -> String {
    let shown: Vec<String> = list.iter().map(|(kind, address)| format!("{kind} {address}")).collect();
    format!("[{}]", shown.join(", "))
}

/// Taints joined by commas.
pub fn show_taints(list: &[String]) -> String {
    format!("[{}]", list.join(", "))
}

impl Observed for Node {
    fn observed(&self) -> String {
        let labels: Vec<String> = [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE]
            .iter()
            .filter_map(|key| self.labels().get(*key).map(|value| format!("{key}={value}")))
            .collect();
        let network = condition(self, C_NET);
        format!(
            "Node {} taints {}, providerID {}, Ready {}, addresses {}, labels [{}]{}",
            self.name_any(),
            show_taints(&taints(self)),
            provider_id(self).unwrap_or_else(|| "empty".into()),
            ready(self).unwrap_or_else(|| "absent".into()),
            show_addresses(&addresses(self)),
            labels.join(", "),
            network.map_or_else(String::new, |(status, reason)| format!(", {C_NET} {status} ({reason})")),
        )
    }
}

impl Observed for Service {
    fn observed(&self) -> String {
        let spec = self.spec.as_ref();
        let ingress: Vec<String> = ingress(self)
            .into_iter()
            .map(|(ip, hostname)| ip.or(hostname).unwrap_or_else(|| "empty entry".into()))
            .collect();
        let deleted =
            self.metadata.deletion_timestamp.as_ref().map(|t| format!(", deletionTimestamp {}", t.0));
        format!(
            "Service {}/{} type {}, finalizers [{}], ingress [{}]{}",
            self.namespace().unwrap_or_default(),
            self.name_any(),
            spec.and_then(|s| s.type_.as_deref()).unwrap_or("ClusterIP"),
            self.finalizers().join(", "),
            ingress.join(", "),
            deleted.unwrap_or_default(),
        )
    }
}

impl Observed for Lease {
    fn observed(&self) -> String {
        let spec = self.spec.clone().unwrap_or_default();
        format!(
            "Lease {}/{} holder {}, duration {}s, transitions {}, renewed {}",
            self.namespace().unwrap_or_default(),
            self.name_any(),
            spec.holder_identity.unwrap_or_else(|| "none".into()),
            spec.lease_duration_seconds.unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
            spec.renew_time.map_or_else(|| "never".to_owned(), |t| t.0.to_string()),
        )
    }
}

impl Observed for Pod {
    fn observed(&self) -> String {
        let status = self.status.clone().unwrap_or_default();
        let mut text = format!(
            "Pod {}/{} {}",
            self.namespace().unwrap_or_default(),
            self.name_any(),
            status.phase.as_deref().unwrap_or("without phase"),
        );
        if let Some(node) = self.spec.as_ref().and_then(|s| s.node_name.as_deref()) {
            text.push_str(&format!(" on {node}"));
        }
        for condition in status.conditions.iter().flatten().filter(|c| c.status != "True") {
            if let Some(message) = condition.message.as_deref().filter(|m| !m.is_empty()) {
                text.push_str(&format!(
                    ", {} {}: {message}",
                    condition.type_,
                    condition.reason.as_deref().unwrap_or("")
                ));
                break;
            }
        }
        for container in status.container_statuses.iter().flatten() {
            let waiting = container.state.as_ref().and_then(|s| s.waiting.as_ref());
            if let Some(waiting) = waiting {
                text.push_str(&format!(
                    ", container {} waiting: {} {}",
                    container.name,
                    waiting.reason.as_deref().unwrap_or(""),
                    waiting.message.as_deref().unwrap_or(""),
                ));
            }
            if container.restart_count > 0 {
                let plural = if container.restart_count == 1 { "" } else { "s" };
                text.push_str(&format!(", {} restart{plural}", container.restart_count));
            }
        }
        text
    }
}

impl Observed for Event {
    fn observed(&self) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let by = source_of(self);
        let (kind, reason) = (text(&self.type_), text(&self.reason));
        format!("{kind} {reason} by {by}: {}", text(&self.message))
    }
}

/// Which component recorded it, in the older field or the newer one.
pub fn source_of(event: &Event) -> &str {
    let older = event.source.as_ref().and_then(|source| source.component.as_deref());
    older.filter(|name| !name.is_empty()).or(event.reporting_component.as_deref()).unwrap_or_default()
}

impl Observed for Namespace {
    fn observed(&self) -> String {
        let status = self.status.as_ref();
        let phase = status.and_then(|s| s.phase.as_deref()).unwrap_or("without a phase");
        let conditions = status.and_then(|s| s.conditions.as_ref()).into_iter().flatten();
        let says: Vec<&str> =
            conditions.filter(|c| c.status == "True").filter_map(|c| c.message.as_deref()).collect();
        format!("a Namespace that is {phase}: {}", says.join("; "))
    }
}
