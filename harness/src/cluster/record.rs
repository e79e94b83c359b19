//! What a cluster is, as data: enough for another process to attach to it, and for the report.

use crate::check::Facility;
use crate::config::BackendKind;
use crate::images::EngineRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Port of the API server on every control plane machine of kind.
pub const API_SERVER_PORT: u16 = 6443;

/// A cluster, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Its name at kind, or the run's; for an existing cluster the kubeconfig's path.
    pub name: String,
    /// Kubeconfig with an administrator's rights.
    pub kubeconfig: PathBuf,
    /// Where it comes from, and what is known of it for that reason.
    pub origin: Origin,
}

/// Where a cluster comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The harness made it with kind.
    Kind(Box<KindRecord>),
    /// The harness runs it in a process of its own.
    Embedded(Box<EmbeddedRecord>),
    /// It was there before.
    Existing,
}

/// What the harness knows of a cluster that it runs in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedRecord {
    /// The socket by which its machines are reached.
    pub socket: PathBuf,
    /// Version of Kubernetes that it is like, e.g. `v1.36.2`.
    pub kubernetes: String,
    /// Name of the topology.
    pub topology: String,
    /// Whether the topology wants a pod network.
    pub pod_network: PodNetworkWish,
    /// Its machines, control planes first.
    pub machines: Vec<Machine>,
}

/// What the harness knows of a cluster that it made with kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindRecord {
    /// The Docker engine it runs on.
    pub engine: EngineRecord,
    /// Name of the Docker network of its machines.
    pub network: String,
    /// Its machines, control planes first, otherwise by name.
    pub machines: Vec<Machine>,
    /// Reference of the node image.
    pub node_image: String,
    /// Digest of the node image, or its id where it was built here.
    pub node_image_digest: String,
    /// Whether Services have their cluster addresses.
    pub kube_proxy: KubeProxy,
    /// Version of Kubernetes, e.g. `v1.36.2`.
    pub kubernetes: String,
    /// Version of kind, e.g. `v0.33.0`.
    pub kind_version: String,
    /// Name of the topology.
    pub topology: String,
    /// Whether the topology wants a pod network; it is the caller who sets it up, see
    /// [`super::Cluster::set_pod_network`].
    pub pod_network: PodNetworkWish,
    /// What can be done to its machines, as found out by looking.
    pub facilities: BTreeSet<Facility>,
    /// CNI plugins every machine has.
    pub cni_plugins: BTreeSet<String>,
    /// Greatest size of a packet on the machines' network, bytes; 0 when unknown.
    pub mtu: u32,
}

impl ClusterRecord {
    /// Where Pods on the hosts' network reach the API server when its Service address does not answer because no
    /// kube-proxy runs; `None` where it does.
    pub fn api_server_for_pods(&self) -> Option<(String, u16)> {
        let kind = self.kind().filter(|kind| kind.kube_proxy == KubeProxy::Absent)?;
        let machine = kind.machines.iter().find(|machine| machine.role == Role::ControlPlane)?;
        machine.ip().map(|ip| (ip.to_string(), API_SERVER_PORT))
    }

    /// Its machines; none for an existing cluster.
    pub fn machines(&self) -> &[Machine] {
        match &self.origin {
            Origin::Kind(kind) => &kind.machines,
            Origin::Embedded(embedded) => &embedded.machines,
            Origin::Existing => &[],
        }
    }

    /// What is known of it when kind made it.
    pub fn kind(&self) -> Option<&KindRecord> {
        match &self.origin {
            Origin::Kind(kind) => Some(kind),
            Origin::Embedded(_) | Origin::Existing => None,
        }
    }

    /// Whether the harness made it, so that it goes with the run.
    pub fn is_ours(&self) -> bool {
        !matches!(self.origin, Origin::Existing)
    }

    /// Whether its topology wants a pod network of the harness; `None` for a cluster that was there before.
    pub fn pod_network(&self) -> Option<PodNetworkWish> {
        match &self.origin {
            Origin::Kind(kind) => Some(kind.pod_network),
            Origin::Embedded(embedded) => Some(embedded.pod_network),
            Origin::Existing => None,
        }
    }

    /// The backend it is of.
    pub fn backend(&self) -> BackendKind {
        match &self.origin {
            Origin::Kind(_) => BackendKind::Kind,
            Origin::Embedded(_) => BackendKind::Embedded,
            Origin::Existing => BackendKind::Existing,
        }
    }
}

/// A machine of the cluster: a container that acts as one, or one that is simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of container, host and Node alike.
    pub name: String,
    /// What it does in the cluster.
    pub role: Role,
    /// IPv4 address on the cluster's network.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address on the cluster's network.
    pub ipv6: Option<Ipv6Addr>,
    /// Docker's id of the container; empty where the machine is none.
    pub container_id: String,
}

impl Machine {
    /// Its address on the cluster's network, IPv4 where it has both.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ipv4.map(IpAddr::from).or(self.ipv6.map(IpAddr::from))
    }
}

/// What a machine does in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the API server.
    ControlPlane,
    /// Runs only what is scheduled to it.
    Worker,
}

impl Role {
    /// kind's word for it, in labels and topology files.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::ControlPlane => "control-plane",
            Role::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether kube-proxy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeProxy {
    /// It runs on every machine.
    Present,
    /// The node image has none.
    Absent,
}

/// Whether a topology wants a pod network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodNetworkWish {
    /// The harness' own, switched on and off as checks need it.
    Switchable,
    /// None at all: the topology says `disableDefaultCNI`.
    Never,
}
