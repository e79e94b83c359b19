//! The driver API's types: what a test sets up, provokes and reads back.
//!
//! These types are the whole interface between the harness and the fake cloud. All durations are in
//! milliseconds, as their names say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A machine of the cloud (contract CLOUD-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The cloud's own identifier, unique and never reused.
    pub id: String,
    /// The machine's name; a CCM may look instances up by it.
    pub name: String,
    /// The `spec.providerID` that its Node should have; `None` if the cloud does not report one yet.
    #[serde(default)]
    pub provider_id: Option<String>,
    /// Instance type; empty if the cloud does not report one.
    #[serde(default)]
    pub instance_type: String,
    /// Zone; empty if the cloud does not report one.
    #[serde(default)]
    pub zone: String,
    /// Region; empty if the cloud does not report one.
    #[serde(default)]
    pub region: String,
    /// Addresses in the cloud's order.
    #[serde(default)]
    pub addresses: Vec<Address>,
    /// Labels other than zone, region and type that the cloud offers for the Node.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Power state. A deleted instance is absent; that is not a state.
    #[serde(default)]
    pub state: InstanceState,
}

/// Power state of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// The machine runs.
    #[default]
    Running,
    /// The machine is shut down but still exists.
    Stopped,
}

/// One address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// A Kubernetes node address type: `Hostname`, `InternalIP`, `ExternalIP`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address as the cloud writes it.
    pub address: String,
}

/// A load balancer (contract CLOUD-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    /// The cloud's own identifier.
    pub id: String,
    /// The name its creator gave it; unique in the cloud.
    pub name: String,
    /// The owner, according to its creator: the Service's uid in the native dialect, a tag elsewhere.
    #[serde(default)]
    pub owner: String,
    /// The ports that it listens on.
    pub frontends: Vec<Frontend>,
    /// Instance ids that traffic goes to, or IP addresses if a load balancer targets those; sorted. Empty if
    /// the cloud chooses the machines itself (`targets: pool` in the profile).
    pub backends: Vec<String>,
    /// How backends are probed. If each port has its own health check, that of the first.
    #[serde(default)]
    pub health_check: Option<HealthCheck>,
    /// Client address ranges that are admitted; empty means that the balancer itself has no restriction.
    #[serde(default)]
    pub source_ranges: Vec<String>,
    /// `None` or `ClientIP`, as in Kubernetes.
    #[serde(default)]
    pub session_affinity: String,
    /// Public addresses; empty until provisioned.
    pub addresses: Vec<LbAddress>,
    /// Its state.
    pub state: LbState,
    /// Data of the dialect that the model has no field for, by field name.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
}

/// A port that a load balancer listens on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frontend {
    /// Port that clients connect to.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Port on the backends.
    pub node_port: u16,
    /// The backends of this port alone, if the cloud has separate ones for each port. Absent means those of
    /// the load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends: Option<Vec<String>>,
    /// How the backends of this port are probed, if the cloud has a health check for each port; otherwise all
    /// ports have that of the load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
}

impl Frontend {
    /// A port with the load balancer's backends.
    pub fn new(port: u16, protocol: impl Into<String>, node_port: u16) -> Frontend {
        Frontend { port, protocol: protocol.into(), node_port, backends: None, health_check: None }
    }
}

/// How a load balancer probes its backends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// `HTTP` or `TCP`.
    pub protocol: String,
    /// Request path; empty for TCP.
    #[serde(default)]
    pub path: String,
    /// Probed port on the backends.
    pub port: u16,
}

/// A public address of a load balancer: an IP, a host name or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LbAddress {
    /// IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
    /// Host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// The state of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LbState {
    /// Created, no address yet.
    Provisioning,
    /// In service.
    Active,
    /// Being deleted; disappears by itself.
    Deleting,
}

/// An object that belongs to a load balancer and must not outlive it: a firewall, listener, pool, reserved address ...
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auxiliary {
    /// The cloud's own identifier.
    pub id: String,
    /// Its kind, e.g. `firewall`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its owner, as in [`LoadBalancer::owner`].
    #[serde(default)]
    pub owner: String,
    /// The load balancer that it belongs to, if any.
    #[serde(default)]
    pub load_balancer: Option<String>,
    /// Its content, by field name.
    #[serde(default)]
    pub spec: serde_json::Value,
}

/// A route of the cloud's network (contract CLOUD-03).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The cloud's own identifier.
    pub id: String,
    /// Destination CIDR.
    pub destination: String,
    /// Target instance's id; `None` for a black hole.
    #[serde(default)]
    pub target_instance: Option<String>,
    /// Target addresses, if the cloud reports them.
    #[serde(default)]
    pub target_addresses: Vec<String>,
    /// Whether traffic is dropped.
    #[serde(default)]
    pub blackhole: bool,
}

/// All objects in the cloud at one moment (contract CLOUD-10). Lists are sorted by id; of instances, shorter
/// ids come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Machines.
    pub instances: Vec<Instance>,
    /// Load balancers.
    pub load_balancers: Vec<LoadBalancer>,
    /// Objects that belong to load balancers.
    pub auxiliaries: Vec<Auxiliary>,
    /// Routes. A cloud without routes may leave this out.
    #[serde(default)]
    pub routes: Vec<Route>,
}

/// The meaning of a call in the model, whatever it is called in the dialect (contract CLOUD-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Op {
    /// Read one instance.
    #[serde(rename = "instance.get")]
    InstanceGet,
    /// List instances.
    #[serde(rename = "instance.list")]
    InstanceList,
    /// Change or delete an instance; no CCM has a reason to do that.
    #[serde(rename = "instance.write")]
    InstanceWrite,
    /// Read one load balancer.
    #[serde(rename = "lb.get")]
    LbGet,
    /// List load balancers.
    #[serde(rename = "lb.list")]
    LbList,
    /// Create a load balancer.
    #[serde(rename = "lb.create")]
    LbCreate,
    /// Change a load balancer, its backends included.
    #[serde(rename = "lb.update")]
    LbUpdate,
    /// Delete a load balancer.
    #[serde(rename = "lb.delete")]
    LbDelete,
    /// Read or list auxiliary objects.
    #[serde(rename = "aux.read")]
    AuxRead,
    /// Create an auxiliary object.
    #[serde(rename = "aux.create")]
    AuxCreate,
    /// Change an auxiliary object.
    #[serde(rename = "aux.update")]
    AuxUpdate,
    /// Delete an auxiliary object.
    #[serde(rename = "aux.delete")]
    AuxDelete,
    /// List routes.
    #[serde(rename = "route.list")]
    RouteList,
    /// Create a route.
    #[serde(rename = "route.create")]
    RouteCreate,
    /// Delete a route.
    #[serde(rename = "route.delete")]
    RouteDelete,
    /// Any other call of a dialect.
    #[serde(rename = "other")]
    Other,
}

impl Op {
    /// Whether the operation changes the cloud.
    pub fn is_write(self) -> bool {
        match self {
            Op::InstanceGet
            | Op::InstanceList
            | Op::LbGet
            | Op::LbList
            | Op::AuxRead
            | Op::RouteList
            | Op::Other => false,
            Op::InstanceWrite
            | Op::LbCreate
            | Op::LbUpdate
            | Op::LbDelete
            | Op::AuxCreate
            | Op::AuxUpdate
            | Op::AuxDelete
            | Op::RouteCreate
            | Op::RouteDelete => true,
        }
    }
}

/// One line of the journal (contract CLOUD-04). Written and numbered when the call arrives, completed when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Position in the order of arrival, from 1, without gaps.
    pub seq: u64,
    /// Arrival, milliseconds since the fake cloud started (monotonic).
    pub at_ms: u64,
    /// How long the call took, milliseconds; `None` while it is in progress.
    pub took_ms: Option<u64>,
    /// The caller's address without port.
    pub peer: IpAddr,
    /// Name of the credential, never the token; `None` if it was missing or unknown.
    pub credential: Option<String>,
    /// The operation of the call.
    pub op: Op,
    /// Whether it changes the cloud.
    pub write: bool,
    /// The object's id; for look-ups by another key `key=value`, e.g. `name=node-1`. A creation has its
    /// `name=value` until it succeeds, and then the new id.
    pub resource: Option<String>,
    /// [`LoadBalancer::owner`] of the load balancer in question, if known.
    pub owner: Option<String>,
    /// `METHOD /path?query` as received.
    pub request: String,
    /// Its header `User-Agent`, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The result of the call.
    pub outcome: Outcome,
    /// The part of the call that the dialect does not know: the call itself, a field, a parameter. `None`: it
    /// knows all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The changes of a call that wrote to a load balancer, or to an object that belongs to one. `None` for
    /// any other call, if nothing changed, or if the driver does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Box<LbChange>>,
}

/// A load balancer with the objects that belong to it, before and after one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LbChange {
    /// Before the call took effect.
    pub before: LbParts,
    /// After the call took effect.
    pub after: LbParts,
}

/// The load balancers that a call is about, and the objects that belong to them. Usually one load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LbParts {
    /// The load balancers, sorted by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<LoadBalancer>,
    /// The objects that belong to them, sorted by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliaries: Vec<Auxiliary>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// Answered by the dialect.
    Answered {
        /// HTTP status.
        status: u16,
    },
    /// Answered or broken by a fault; the model was not involved, except with
    /// [`Effect::LoseAnswer`](super::Effect::LoseAnswer) and for lists that show less than exists. A call
    /// that a fault only delays, or whose effect it delays, is `Answered`.
    Faulted {
        /// HTTP status; `None` if the connection was closed or never answered.
        status: Option<u16>,
        /// Id of the fault.
        fault: u64,
    },
    /// Held by a barrier or still in progress.
    UnderWay,
    /// The caller disconnected before it was answered.
    Abandoned,
}

/// Settings of the whole cloud. Absent fields do not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Largest number of items in a page of any list, at least 1; default 50.
    pub page_size: Option<u32>,
    /// How long a new load balancer stays without an address, milliseconds; default 0.
    pub provisioning_ms: Option<u64>,
    /// How long a deleted load balancer stays visible as `deleting`, milliseconds; default 0.
    pub deletion_ms: Option<u64>,
    /// How old a list may be, milliseconds; default 0, which means always fresh (contract CLOUD-08).
    pub stale_ms: Option<u64>,
    /// How long an action runs, milliseconds; default 0, which means that it has finished when the call is
    /// answered. Only for dialects with actions.
    pub action_ms: Option<u64>,
    /// How long every call waits before it takes effect, milliseconds; default 0. A fault takes effect on a
    /// call without this delay.
    pub latency_ms: Option<u64>,
    /// Which addresses a new load balancer gets; default: those that are usual in the dialect.
    pub addresses: Option<LbAddressing>,
}

/// Which addresses a new load balancer gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LbAddressing {
    /// As usual in the dialect.
    #[default]
    Usual,
    /// One IPv4 and one IPv6 address.
    DualStack,
    /// Each with a host name.
    Named,
}

/// A credential that the cloud accepts. The token itself is never shown again.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// Name for the journal, e.g. the replica that it belongs to.
    pub name: String,
    /// Bearer token.
    pub token: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("name", &self.name).field("token", &"<redacted>").finish()
    }
}
