//! The settings of a cluster: its nodes, its network, its pace, and which images are programs of this machine.

mod controllers;
mod network;
mod node;
mod pace;
mod program;

pub use controllers::Controller;
pub use network::{Dns, PodCidrs, PodNetwork, PodRange, ServiceVip};
pub use node::{CloudProvider, NodeSpec, NodeTaint, ServingCertificate};
pub use pace::Pace;
pub use program::{Bounds, Mounts, Program, Share};

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The first minor version in which kubelets with an external cloud provider accept two addresses.
const DUAL_STACK_NODE_IPS: u32 = 29;

/// All settings. [`Settings::new`] gives the values of an ordinary cluster.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Kubernetes version that is modelled: messages and defaults differ between versions.
    pub kubernetes: KubernetesVersion,
    /// The API server's address for programs; on loopback. They find it in `KUBERNETES_SERVICE_HOST` and `_PORT`.
    pub api_server: SocketAddr,
    /// The API server's certificate authority as PEM: `ca.crt` next to service account tokens, and in
    /// `kube-root-ca.crt`.
    pub cluster_ca: String,
    /// The machines that exist from the start.
    pub nodes: Vec<NodeSpec>,
    /// The controllers that run.
    pub controllers: BTreeSet<Controller>,
    /// The images that run as programs. Pods of other images are simulated.
    pub programs: Vec<Program>,
    /// The pod network.
    pub network: PodNetwork,
    /// Whether the cluster has DNS.
    pub dns: Dns,
    /// Names that the resolvers of machines and cluster DNS know in addition to those of this computer. If
    /// there are any, each program has its own `/etc/hosts`. It contains the names while the program's
    /// resolver works: a machine's resolver always does; cluster DNS does while one of its Pods is ready, its
    /// Service address works and the Node is Ready. This needs namespaces ([`Mounts`]).
    pub names: BTreeMap<String, IpAddr>,
    /// Whether the cluster IP of a Service works.
    pub service_vip: ServiceVip,
    /// Whether each Node gets a `podCIDR`, and from which range.
    pub pod_cidrs: PodCidrs,
    /// Whether the scheduler counts CPU, memory and Pods.
    pub resources: Resources,
    /// How programs see their mounts.
    pub mounts: Mounts,
    /// The resources that programs may use on this machine.
    pub bounds: Bounds,
    /// The speed of the cluster.
    pub pace: Pace,
    /// How many bytes of a container's output are kept, for the current and for the previous run.
    pub log_limit_bytes: usize,
    /// The folder for the files of Pods; `None`: the system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl Settings {
    /// The settings of an ordinary cluster without nodes, with this API server.
    #[must_use]
    pub fn new(api_server: SocketAddr, cluster_ca: String) -> Settings {
        Settings {
            kubernetes: KubernetesVersion { minor: 36, patch: 2 },
            api_server,
            cluster_ca,
            nodes: Vec::new(),
            controllers: Controller::ALL.into(),
            programs: Vec::new(),
            network: PodNetwork::Independent,
            dns: Dns::Absent,
            names: BTreeMap::new(),
            service_vip: ServiceVip::Shortcut,
            pod_cidrs: PodCidrs::Allocated(vec![PodRange::DEFAULT]),
            resources: Resources::Counted,
            mounts: Mounts::Detect,
            bounds: Bounds::default(),
            pace: Pace::default(),
            log_limit_bytes: 1 << 20,
            folder: None,
        }
    }
}

/// A version of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// The minor version, e.g. 36.
    pub minor: u32,
    /// The patch version.
    pub patch: u32,
}

impl std::fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

/// Whether the scheduler counts resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resources {
    /// It compares requests with the capacity of Nodes.
    Counted,
    /// It does not: Nodes are never full.
    Ignored,
}

impl Settings {
    /// The reasons why these settings cannot work, as sentences; empty if they can.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        for node in &self.nodes {
            if !names.insert(&node.name) {
                problems.push(format!("two nodes are called {:?}: give each its own name", node.name));
            }
            problems.extend(self.address_problem(node));
            if let Some(address) = node.loopback {
                if !address.is_loopback() {
                    problems.push(format!("node {:?}: {address} is not in 127.0.0.0/8", node.name));
                }
                if !addresses.insert(address) {
                    problems.push(format!("node {:?}: {address} belongs to another node already", node.name));
                }
            }
        }
        if !self.api_server.ip().is_loopback() {
            problems.push(format!("the API server's address {} is not on loopback", self.api_server));
        }
        for program in &self.programs {
            if program.entry_point.is_empty() {
                problems
                    .push(format!("image {:?} has no entry point: name the program it runs", program.image));
            }
        }
        if let PodCidrs::Allocated(ranges) = &self.pod_cidrs {
            for PodRange { cluster, node_prefix } in ranges {
                // At least two addresses for Pods, in addition to the first two and the last.
                let longest = cluster.max_prefix_len() - 3;
                if !(cluster.prefix_len() <= *node_prefix && *node_prefix <= longest) {
                    problems.push(format!(
                        "a node's pod range of /{node_prefix} does not fit into the cluster's {cluster}; {longest} is \
                         the longest prefix"
                    ));
                }
            }
            if ranges.is_empty() || !one_of_each_family(ranges.iter().map(|range| range.cluster.addr())) {
                problems.push("pod ranges have to be one, or one of each IP family".to_owned());
            }
        }
        problems
    }

    /// The fault in the addresses of a node.
    fn address_problem(&self, node: &NodeSpec) -> Option<String> {
        let (name, ips) = (&node.name, &node.node_ips);
        if !one_of_each_family(ips.iter().copied()) {
            return Some(format!("node {name:?}: {ips:?}: give it one address, or one of each IP family"));
        }
        // Newer kubelets annotate both (gate CloudDualStackNodeIPs); older ones refuse to start.
        (ips.len() == 2 && node.cloud == CloudProvider::External && self.kubernetes.minor < DUAL_STACK_NODE_IPS)
            .then(|| {
                format!(
                    "node {name:?}: a kubelet of {} with an external cloud provider takes one --node-ip; two are taken \
                     from v1.{DUAL_STACK_NODE_IPS} on",
                    self.kubernetes
                )
            })
    }

    /// The program that this image stands for.
    pub fn program(&self, image: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.image == image)
    }
}

/// Whether no two addresses have the same IP family.
fn one_of_each_family(ips: impl Iterator<Item = IpAddr>) -> bool {
    let mut families = BTreeSet::new();
    ips.into_iter().all(|ip| families.insert(ip.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn every_mistake_is_named() {
        let mut settings = Settings::new(SocketAddr::from(([10, 0, 0, 1], 443)), String::new());
        settings.nodes = vec![NodeSpec::new("a"), NodeSpec::new("a")];
        settings.nodes[0].loopback = Some(Ipv4Addr::new(10, 0, 0, 2));
        settings.nodes[1].node_ips = vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let cluster = "10.0.0.0/24".parse().expect("a network");
        let range = PodRange { cluster, node_prefix: 16 };
        settings.pod_cidrs = PodCidrs::Allocated(vec![range, range]);
        let problems = settings.problems();
        assert_eq!(problems.len(), 7, "{problems:?}");
        assert!(Settings::new(SocketAddr::from(([127, 0, 0, 1], 443)), String::new()).problems().is_empty());
    }

    #[test]
    fn two_families_need_kubelets_that_know_them() {
        let mut settings = Settings::new(SocketAddr::from(([127, 0, 0, 1], 443)), String::new());
        settings.nodes = vec![NodeSpec::new("a")];
        settings.nodes[0].node_ips =
            vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])];
        assert!(settings.problems().is_empty());
        settings.kubernetes = KubernetesVersion { minor: 28, patch: 0 };
        assert_eq!(settings.problems().len(), 1);
        settings.nodes[0].cloud = CloudProvider::None;
        assert!(settings.problems().is_empty());
    }
}
