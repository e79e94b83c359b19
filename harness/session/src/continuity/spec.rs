//! The parts of a Service that determine its load balancer, and the names with which backends refer to a Node.

use crate::k8s::{ingress, is_being_deleted, provider_id};
use harness_config::ProviderIdFormat;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a Service that some setting of its load balancer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Whether it needs a load balancer: its type, its class, its deletion.
    Wanted,
    /// Its annotations, which can have any vendor-specific meaning.
    Annotations,
    /// Its ports.
    Ports,
    /// Its source ranges.
    Ranges,
    /// Its session affinity.
    Affinity,
    /// Its traffic policy, with the port of the health check.
    Policy,
    /// IP families and requested addresses.
    Addresses,
}

/// One version of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceVersion {
    /// Each part as text, for comparison.
    pub(super) parts: BTreeMap<Part, String>,
    /// The addresses it publishes.
    pub(super) published: BTreeSet<String>,
    /// Whether it needs a load balancer.
    pub(super) wants: bool,
    /// The field manager that wrote its status last.
    pub(super) status_by: Option<String>,
}

impl ServiceVersion {
    /// The properties of a Service; `gone` if it was deleted.
    pub(super) fn of(service: &Service, gone: bool) -> ServiceVersion {
        let spec = service.spec.clone().unwrap_or_default();
        let wants = !gone && !is_being_deleted(service) && spec.type_.as_deref() == Some("LoadBalancer");
        let port = |port: &k8s_openapi::api::core::v1::ServicePort| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            format!("{}/{protocol} to {}", port.port, port.node_port.unwrap_or_default())
        };
        let ports: Vec<String> = spec.ports.iter().flatten().map(port).collect();
        let parts = BTreeMap::from([
            (Part::Wanted, format!("{wants} {}", json!(spec.load_balancer_class))),
            (Part::Annotations, json!(service.annotations()).to_string()),
            (Part::Ports, ports.join(", ")),
            (Part::Ranges, json!(spec.load_balancer_source_ranges).to_string()),
            (Part::Affinity, json!([spec.session_affinity, spec.session_affinity_config]).to_string()),
            (Part::Policy, json!([spec.external_traffic_policy, spec.health_check_node_port]).to_string()),
            (
                Part::Addresses,
                json!([spec.ip_families, spec.load_balancer_ip, spec.external_ips]).to_string(),
            ),
        ]);
        let published = ingress(service).into_iter().filter_map(|(ip, name)| ip.or(name)).collect();
        ServiceVersion { parts, published, wants, status_by: status_by(service) }
    }

    /// Whether clients use its load balancer.
    pub(super) fn is_in_use(&self) -> bool {
        self.wants && !self.published.is_empty()
    }

    /// The parts in which it differs from another version.
    pub(super) fn differs_in(&self, other: &ServiceVersion) -> BTreeSet<Part> {
        self.parts
            .iter()
            .filter(|(part, text)| other.parts.get(part) != Some(text))
            .map(|(part, _)| *part)
            .collect()
    }
}

/// The manager that wrote the status last.
fn status_by(service: &Service) -> Option<String> {
    let fields = service.metadata.managed_fields.iter().flatten();
    let of_status = fields.filter(|field| field.subresource.as_deref() == Some("status"));
    of_status
        .max_by_key(|field| field.time.as_ref().map(|time| time.0))
        .and_then(|field| field.manager.clone())
}

/// The names with which a load balancer's backend can refer to a Node: its machine's id, its addresses, its own name.
pub(super) fn backend_names(node: &Node, format: &ProviderIdFormat) -> BTreeSet<String> {
    let id = provider_id(node);
    let machine = id.as_deref().and_then(|id| format.instance(id)).map(str::to_owned);
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let addresses = addresses.map(|address| address.address.clone());
    machine.into_iter().chain(addresses).chain([node.name_any()]).collect()
}
