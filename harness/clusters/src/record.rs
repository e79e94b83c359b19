//! The description of a cluster as data: enough for another process to attach to it, for the report, and for the
//! components next to it.

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
    /// Its backend.
    pub backend: BackendKind,
    /// Its name: the lane's, or the kubeconfig's path for an existing cluster.
    pub name: String,
    /// Kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// Whether it is removed with the run.
    pub ownership: Ownership,
    /// Its machines, control planes first, otherwise by name; none if the harness has no access to them.
    pub machines: Vec<Machine>,
    /// The facilities of its machines.
    pub facilities: BTreeSet<Facility>,
    /// The pod network of its topology, which the caller sets up. `None` if others have set it up.
    pub pod_network: Option<PodNetworkPlan>,
    /// The address at which Pods on the host's network reach the API server if its Service address does not answer
    /// because there is no kube-proxy; `None` if it does.
    pub api_server_for_pods: Option<(String, u16)>,
    /// The address at which Pods of another cluster reach its API server, as a URL that matches its certificate; `None`
    /// if it is the one in the kubeconfig.
    pub api_server_for_other_clusters: Option<String>,
    /// The first of the supplementary groups that distinguish packets of the CCM's replicas from those of their machines;
    /// `None` if groups cannot be used for that.
    pub replica_group: Option<u32>,
    /// Where a cloud must run so that its machines can reach it.
    pub cloud_site: CloudSite,
    /// Its description in the report.
    pub about: About,
    /// The part that only its backend uses, when it attaches.
    pub own: serde_json::Value,
}

impl ClusterRecord {
    /// Whether the harness created it, so that it is removed with the run.
    pub fn is_ours(&self) -> bool {
        self.ownership == Ownership::Ours
    }
}

/// Who created a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ownership {
    /// The harness, for this run; it removes it.
    Ours,
    /// Someone else; the harness removes only what it added.
    Others,
}

/// Where a cloud must run so that a cluster's machines can reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudSite {
    /// In this process: the machines are on this machine, or this is one of the cluster's Pods.
    ThisMachine {
        /// The address at which they reach it.
        address: Ipv4Addr,
        /// The name that they resolve to that address, if there is one.
        name: Option<String>,
    },
    /// On this network of the Docker engine.
    Network(String),
    /// On the network of the Docker engine that the cluster's Nodes use, whichever that is.
    NextToNodes,
}

/// The description of a cluster in the report. Unknown values are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Name of the topology.
    pub topology: String,
    /// Version of Kubernetes, e.g. `v1.36.2`; `None` uses the one that the API server reports.
    pub kubernetes: Option<String>,
    /// Version of kind, e.g. `v0.33.0`.
    pub kind_version: String,
    /// Reference of the node image.
    pub node_image: String,
    /// Digest of the node image, or its id if it was built here.
    pub node_image_digest: String,
    /// The seed of its timing; `None` for a real one.
    pub seed: Option<u32>,
}

/// A machine of the cluster: a container, or a simulated one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the machine and its Node.
    pub name: String,
    /// Its role in the cluster.
    pub role: Role,
    /// IPv4 address on the cluster's network.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address on the cluster's network.
    pub ipv6: Option<Ipv6Addr>,
    /// Docker's id of the container; empty if it is not a container.
    pub container_id: String,
    /// The address at which the harness reaches ports on the machine's network; `None` if it cannot.
    pub reached_at: Option<IpAddr>,
}

impl Machine {
    /// Its address on the cluster's network, IPv4 if it has both.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ipv4.map(IpAddr::from).or(self.ipv6.map(IpAddr::from))
    }
}

/// The role of a machine in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs the API server.
    ControlPlane,
    /// Runs only what is scheduled to it.
    Worker,
}

impl Role {
    /// kind's name for it, in labels and topology files.
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

/// The pod network of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodNetworkPlan {
    /// The harness's own, set up and removed as checks need it.
    Switchable,
    /// None: the topology sets `disableDefaultCNI`.
    Never,
}
