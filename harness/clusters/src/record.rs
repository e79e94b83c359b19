//! What a cluster is, as data: enough for another process to attach to it, for the report, and for what stands beside it.

use harness_config::BackendKind;
use harness_core::check::Facility;
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
    /// The backend it is of.
    pub backend: BackendKind,
    /// Its name: the lane's, or for a cluster that was there before the kubeconfig's path.
    pub name: String,
    /// Kubeconfig with an administrator's rights.
    pub kubeconfig: PathBuf,
    /// Whether it goes with the run.
    pub ownership: Ownership,
    /// Its machines, control planes first, otherwise by name; none where the harness has no access to them.
    pub machines: Vec<Machine>,
    /// What can be done to its machines.
    pub facilities: BTreeSet<Facility>,
    /// The pod network its topology asks for; it is the caller who sets it up. `None` where others have done that.
    pub pod_network: Option<PodNetworkPlan>,
    /// Where Pods on the hosts' network reach the API server when its Service address does not answer because no
    /// kube-proxy runs; `None` where it does.
    pub api_server_for_pods: Option<(String, u16)>,
    /// Where Pods of a cluster beside it reach its API server, as a URL that fits its certificate; `None` where they do as
    /// this machine does, by what the kubeconfig says.
    pub api_server_from_beside: Option<String>,
    /// The first of the supplementary groups by which packets of the CCM's replicas are told from those of their machines;
    /// `None` where nothing is to be told by groups.
    pub replica_group: Option<u32>,
    /// Where a cloud has to be for its machines to reach it.
    pub cloud_site: CloudSite,
    /// What the report says of it.
    pub about: About,
    /// What its backend alone knows how to read, when it attaches.
    pub own: serde_json::Value,
}

impl ClusterRecord {
    /// Whether the harness made it, so that it goes with the run.
    pub fn is_ours(&self) -> bool {
        self.ownership == Ownership::Ours
    }
}

/// Who made a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ownership {
    /// The harness, for this run; it removes it.
    Ours,
    /// Somebody else; the harness takes away only what it put there.
    Others,
}

/// Where a cloud has to be for a cluster's machines to reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudSite {
    /// In this process: the machines are of this one, or this is one of the cluster's Pods.
    ThisMachine {
        /// The address at which they reach it.
        address: Ipv4Addr,
        /// The name by which they know that address, where they do.
        name: Option<String>,
    },
    /// On this network of the Docker engine.
    Network(String),
    /// On whichever network of the Docker engine the cluster's Nodes are.
    BesideNodes,
}

/// What the report says of a cluster. Empty where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Name of the topology.
    pub topology: String,
    /// Version of Kubernetes, e.g. `v1.36.2`; `None` leaves it to what the API server says.
    pub kubernetes: Option<String>,
    /// Version of kind, e.g. `v0.33.0`.
    pub kind_version: String,
    /// Reference of the node image.
    pub node_image: String,
    /// Digest of the node image, or its id where it was built here.
    pub node_image_digest: String,
    /// What its moments were chosen by; `None` for a real one.
    pub seed: Option<u32>,
}

/// A machine of the cluster: a container that acts as one, or one that is simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of machine and Node alike.
    pub name: String,
    /// What it does in the cluster.
    pub role: Role,
    /// IPv4 address on the cluster's network.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address on the cluster's network.
    pub ipv6: Option<Ipv6Addr>,
    /// Docker's id of the container; empty where the machine is none.
    pub container_id: String,
    /// Where the harness reaches what listens on the machine's network; `None` where it cannot.
    pub reached_at: Option<IpAddr>,
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

/// The pod network that a topology asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodNetworkPlan {
    /// The harness' own, switched on and off as checks need it.
    Switchable,
    /// None at all: the topology says `disableDefaultCNI`.
    Never,
}
