//! Requests and answers of the `native` dialect as JSON. They are separate from the driver API's types, so
//! that either can change.

use fake_cloud_driver::{self as driver, InstanceState, LbState};
use fake_cloud_model::{AuxSpec, LbSpec, Refusal, check_port, check_protocol, check_source_ranges};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An instance.
#[derive(Serialize)]
pub(super) struct Instance<'a> {
    id: &'a str,
    name: &'a str,
    provider_id: Option<&'a str>,
    #[serde(rename = "type")]
    instance_type: &'a str,
    zone: &'a str,
    region: &'a str,
    state: InstanceState,
    addresses: &'a [driver::Address],
    labels: &'a BTreeMap<String, String>,
}

impl<'a> From<&'a driver::Instance> for Instance<'a> {
    fn from(instance: &'a driver::Instance) -> Instance<'a> {
        Instance {
            id: &instance.id,
            name: &instance.name,
            provider_id: instance.provider_id.as_deref(),
            instance_type: &instance.instance_type,
            zone: &instance.zone,
            region: &instance.region,
            state: instance.state,
            addresses: &instance.addresses,
            labels: &instance.labels,
        }
    }
}

/// A load balancer.
#[derive(Serialize)]
pub(super) struct LoadBalancer<'a> {
    id: &'a str,
    name: &'a str,
    owner: &'a str,
    state: LbState,
    frontends: &'a [driver::Frontend],
    backends: &'a [String],
    health_check: Option<&'a driver::HealthCheck>,
    session_affinity: &'a str,
    source_ranges: &'a [String],
    addresses: &'a [driver::LbAddress],
}

impl<'a> From<&'a driver::LoadBalancer> for LoadBalancer<'a> {
    fn from(lb: &'a driver::LoadBalancer) -> LoadBalancer<'a> {
        LoadBalancer {
            id: &lb.id,
            name: &lb.name,
            owner: &lb.owner,
            state: lb.state,
            frontends: &lb.frontends,
            backends: &lb.backends,
            health_check: lb.health_check.as_ref(),
            session_affinity: &lb.session_affinity,
            source_ranges: &lb.source_ranges,
            addresses: &lb.addresses,
        }
    }
}

/// The body of a request that creates a load balancer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewLoadBalancer {
    pub(super) name: String,
    #[serde(default)]
    pub(super) owner: String,
    frontends: Vec<driver::Frontend>,
    backends: Vec<String>,
    #[serde(default)]
    health_check: Option<driver::HealthCheck>,
    #[serde(default)]
    session_affinity: String,
    #[serde(default)]
    source_ranges: Vec<String>,
}

impl From<NewLoadBalancer> for LbSpec {
    fn from(new: NewLoadBalancer) -> LbSpec {
        LbSpec {
            name: new.name,
            owner: new.owner,
            frontends: new.frontends,
            backends: new.backends,
            health_check: new.health_check,
            source_ranges: new.source_ranges,
            session_affinity: new.session_affinity,
            details: Value::Null,
        }
    }
}

/// The body of a request that replaces a load balancer; its name and owner do not change unless they are given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadBalancerUpdate {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) owner: Option<String>,
    frontends: Vec<driver::Frontend>,
    backends: Vec<String>,
    #[serde(default)]
    health_check: Option<driver::HealthCheck>,
    #[serde(default)]
    session_affinity: String,
    #[serde(default)]
    source_ranges: Vec<String>,
}

impl LoadBalancerUpdate {
    /// The load balancer after this update.
    pub(super) fn over(self, old: LbSpec) -> LbSpec {
        LbSpec {
            name: self.name.unwrap_or(old.name),
            owner: self.owner.unwrap_or(old.owner),
            frontends: self.frontends,
            backends: self.backends,
            health_check: self.health_check,
            source_ranges: self.source_ranges,
            session_affinity: self.session_affinity,
            details: old.details,
        }
    }
}

/// The body of a request that replaces the backends of a load balancer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Backends {
    pub(super) backends: Vec<String>,
}

/// A firewall.
#[derive(Serialize)]
pub(super) struct Firewall<'a> {
    id: &'a str,
    name: &'a str,
    owner: &'a str,
    load_balancer: Option<&'a str>,
    source_ranges: &'a Value,
    ports: &'a Value,
}

impl<'a> From<&'a driver::Auxiliary> for Firewall<'a> {
    fn from(aux: &'a driver::Auxiliary) -> Firewall<'a> {
        const NONE: &Value = &Value::Array(Vec::new());
        Firewall {
            id: &aux.id,
            name: &aux.name,
            owner: &aux.owner,
            load_balancer: aux.load_balancer.as_deref(),
            source_ranges: aux.spec.get("source_ranges").unwrap_or(NONE),
            ports: aux.spec.get("ports").unwrap_or(NONE),
        }
    }
}

/// The body of a request that creates or replaces a firewall.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFirewall {
    pub(super) name: String,
    #[serde(default)]
    pub(super) owner: String,
    #[serde(default)]
    pub(super) load_balancer: Option<String>,
    #[serde(default)]
    source_ranges: Vec<String>,
    #[serde(default)]
    ports: Vec<Port>,
}

/// A port that a firewall opens.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Port {
    port: u16,
    protocol: String,
}

impl TryFrom<NewFirewall> for AuxSpec {
    type Error = Refusal;

    fn try_from(new: NewFirewall) -> Result<AuxSpec, Refusal> {
        check_source_ranges(&new.source_ranges)?;
        for port in &new.ports {
            check_port("port", port.port)?;
            check_protocol(&port.protocol)?;
        }
        Ok(AuxSpec {
            name: new.name,
            owner: new.owner,
            load_balancer: new.load_balancer,
            spec: json!({"source_ranges": new.source_ranges, "ports": new.ports}),
        })
    }
}

/// A route.
#[derive(Serialize)]
pub(super) struct Route<'a> {
    id: &'a str,
    destination: &'a str,
    target_instance: Option<&'a str>,
    target_addresses: &'a [String],
    blackhole: bool,
}

impl<'a> From<&'a driver::Route> for Route<'a> {
    fn from(route: &'a driver::Route) -> Route<'a> {
        Route {
            id: &route.id,
            destination: &route.destination,
            target_instance: route.target_instance.as_deref(),
            target_addresses: &route.target_addresses,
            blackhole: route.blackhole,
        }
    }
}

/// The body of a request that creates a route.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRoute {
    pub(super) destination: String,
    pub(super) target_instance: String,
}
