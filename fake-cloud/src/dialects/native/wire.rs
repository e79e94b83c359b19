//! What goes over the wire in the native dialect.

use crate::admin::{Address, Auxiliary, Frontend, HealthCheck, Instance, InstanceState};
use crate::model::LbRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An instance as the cloud shows it.
#[derive(Serialize)]
pub(super) struct WireInstance<'a> {
    id: &'a str,
    name: &'a str,
    provider_id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'a str,
    zone: &'a str,
    region: &'a str,
    state: InstanceState,
    addresses: &'a [Address],
    labels: &'a BTreeMap<String, String>,
}

impl<'a> From<&'a Instance> for WireInstance<'a> {
    fn from(instance: &'a Instance) -> Self {
        WireInstance {
            id: &instance.id,
            name: &instance.name,
            provider_id: instance.provider_id.as_deref(),
            kind: &instance.instance_type,
            zone: &instance.zone,
            region: &instance.region,
            state: instance.state,
            addresses: &instance.addresses,
            labels: &instance.labels,
        }
    }
}

/// A load balancer as a client asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireLoadBalancer {
    #[serde(default)]
    name: String,
    #[serde(default)]
    owner: String,
    frontends: Vec<Frontend>,
    #[serde(default)]
    backends: Vec<String>,
    #[serde(default)]
    health_check: Option<HealthCheck>,
    #[serde(default)]
    source_ranges: Vec<String>,
    #[serde(default)]
    session_affinity: String,
}

impl WireLoadBalancer {
    /// The request; on an update, which may leave the name out, `name` stands in for it.
    pub(super) fn request(self, name: &str) -> LbRequest {
        LbRequest {
            name: if self.name.is_empty() { name.to_owned() } else { self.name },
            owner: self.owner,
            frontends: self.frontends,
            backends: self.backends,
            health_check: self.health_check,
            source_ranges: self.source_ranges,
            session_affinity: if self.session_affinity.is_empty() { "None".to_owned() } else { self.session_affinity },
        }
    }
}

/// Backends alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireBackends {
    pub(super) backends: Vec<String>,
}

/// A port a firewall lets in.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WirePort {
    port: u16,
    protocol: String,
}

/// A firewall as a client asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireFirewall {
    #[serde(default)]
    name: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    load_balancer: Option<String>,
    #[serde(default)]
    source_ranges: Vec<String>,
    #[serde(default)]
    ports: Vec<WirePort>,
}

impl WireFirewall {
    pub(super) fn spec(&self) -> Value {
        json!({"source_ranges": self.source_ranges, "ports": self.ports})
    }

    pub(super) fn auxiliary(self) -> Auxiliary {
        let spec = self.spec();
        Auxiliary {
            id: String::new(),
            kind: super::routes::FIREWALL.to_owned(),
            name: self.name,
            owner: self.owner,
            load_balancer: self.load_balancer,
            spec,
        }
    }
}

/// A firewall as the cloud shows it.
pub(super) fn firewall(aux: &Auxiliary) -> Value {
    json!({
        "id": aux.id, "name": aux.name, "owner": aux.owner, "load_balancer": aux.load_balancer,
        "source_ranges": aux.spec["source_ranges"], "ports": aux.spec["ports"],
    })
}

/// A route as a client asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireRoute {
    pub(super) destination: String,
    #[serde(default)]
    pub(super) target_instance: Option<String>,
    #[serde(default)]
    pub(super) target_addresses: Vec<String>,
    #[serde(default)]
    pub(super) blackhole: bool,
}
