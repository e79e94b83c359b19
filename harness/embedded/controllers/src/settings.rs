//! What the cluster shall be like: its nodes, its network, its pace, and which images are programs of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The minor version from which on kubelets with an external cloud provider take two addresses.
const DUAL_STACK_NODE_IPS: u32 = 29;

/// Everything that can be chosen. [`Settings::new`] gives the values of an ordinary cluster.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Kubernetes version that is modelled: words and defaults differ between versions.
    pub kubernetes: KubernetesVersion,
    /// Where programs reach the API server; on loopback. They find it in `KUBERNETES_SERVICE_HOST` and `_PORT`.
    pub api_server: SocketAddr,
    /// The API server's certificate authority, PEM: `ca.crt` beside service account tokens and in `kube-root-ca.crt`.
    pub cluster_ca: String,
    /// The machines that exist from the start.
    pub nodes: Vec<NodeSpec>,
    /// Which images run as programs. Pods of other images are simulated.
    pub programs: Vec<Program>,
    /// The pod network.
    pub network: PodNetwork,
    /// Whether the cluster has a DNS.
    pub dns: Dns,
    /// Names that the machines' resolvers know besides those of this computer, and cluster DNS with them. When there
    /// are any, each program has a `/etc/hosts` of its own, which holds them while the resolver it is to ask answers:
    /// its machine's at any time, cluster DNS while a Pod of it is ready, its Service address works and the Node is
    /// Ready. That needs namespaces ([`Mounts`]).
    pub names: BTreeMap<String, IpAddr>,
    /// Whether the cluster IP of a Service leads anywhere.
    pub service_vip: ServiceVip,
    /// Whether each Node gets a `podCIDR`, and from which range.
    pub pod_cidrs: PodCidrs,
    /// Whether the scheduler counts CPU, memory and Pods.
    pub resources: Resources,
    /// How mount paths reach programs.
    pub mounts: Mounts,
    /// How fast things go.
    pub pace: Pace,
    /// The most that is kept of a container's output, in bytes, for the current and the previous run each.
    pub log_limit_bytes: usize,
    /// The folder under which the files of Pods are kept; `None`: the system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl Settings {
    /// An ordinary cluster without nodes at this API server.
    #[must_use]
    pub fn new(api_server: SocketAddr, cluster_ca: String) -> Settings {
        Settings {
            kubernetes: KubernetesVersion { minor: 36, patch: 2 },
            api_server,
            cluster_ca,
            nodes: Vec::new(),
            programs: Vec::new(),
            network: PodNetwork::Independent,
            dns: Dns::Absent,
            names: BTreeMap::new(),
            service_vip: ServiceVip::Shortcut,
            pod_cidrs: PodCidrs::Allocated(vec![PodRange {
                first: IpAddr::from([10, 244, 0, 0]),
                prefix: 16,
                node_prefix: 24,
            }]),
            resources: Resources::Counted,
            mounts: Mounts::Detect,
            pace: Pace::default(),
            log_limit_bytes: 1 << 20,
            folder: None,
        }
    }
}

/// A version of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// The second number, e.g. 36.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl std::fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v1.{}.{}", self.minor, self.patch)
    }
}

/// One machine of the cluster and its kubelet.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// The Node's name, which is its host name too.
    pub name: String,
    /// Labels the kubelet sets when it registers (`--node-labels`), besides those every kubelet sets.
    pub labels: BTreeMap<String, String>,
    /// Taints the kubelet registers with (`--register-with-taints`), besides the cloud's.
    pub taints: Vec<NodeTaint>,
    /// Who is expected to initialise the Node.
    pub cloud: CloudProvider,
    /// `--node-ip`: annotated on the Node, and its addresses until the cloud says otherwise. At most one of each family,
    /// the one of the preferred family first.
    pub node_ips: Vec<IpAddr>,
    /// `--provider-id`.
    pub provider_id: Option<String>,
    /// The loopback address of this machine, from 127.0.0.0/8: what probes of its `hostNetwork` Pods ask, and
    /// what a program is told as `${NODE_LOOPBACK}`. `None`: the next free one.
    pub loopback: Option<Ipv4Addr>,
    /// Files of this machine by their absolute path: what `hostPath` volumes find there. Written 0600.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// What the Node has to give, as `cpu`, `memory` and so on.
    pub capacity: BTreeMap<String, String>,
}

impl NodeSpec {
    /// A machine that waits for a cloud controller manager.
    #[must_use]
    pub fn new(name: impl Into<String>) -> NodeSpec {
        let capacity = [("cpu", "8"), ("memory", "16Gi"), ("pods", "110"), ("ephemeral-storage", "100Gi")];
        NodeSpec {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            cloud: CloudProvider::External,
            node_ips: Vec::new(),
            provider_id: None,
            loopback: None,
            files: BTreeMap::new(),
            capacity: capacity.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }
}

/// A taint a kubelet registers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTaint {
    /// E.g. `node-role.kubernetes.io/control-plane`.
    pub key: String,
    /// May be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// The kubelet's `--cloud-provider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudProvider {
    /// `external`: the Node is tainted as uninitialised and waits for its addresses.
    External,
    /// Not given: the kubelet sets its own addresses.
    None,
}

/// An image that is a program of this machine.
#[derive(Debug, Clone)]
pub struct Program {
    /// The image reference as Pods name it.
    pub image: String,
    /// The image's entry point: program and first arguments. A container's `command` replaces it,
    /// unless [`Program::keeps_entry_point`].
    pub entry_point: Vec<String>,
    /// The image's default arguments; a container's `args` replace them.
    pub arguments: Vec<String>,
    /// Whether a container's `command` is dropped: it names a path inside the image that is not on this machine.
    pub keeps_entry_point: bool,
    /// Arguments added at the end. `${NODE_LOOPBACK}`, `${NODE_NAME}` and `${POD_IP}` are filled in.
    pub more_arguments: Vec<String>,
    /// Environment added to the container's own, with the same placeholders.
    pub environment: BTreeMap<String, String>,
}

/// The cluster's pod network. Without it kubelets stay NotReady and Pods that are not on the host network do not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodNetwork {
    /// There is none.
    None,
    /// Is there on each node as soon as its kubelet runs.
    Independent,
    /// Is there on a node once the Node has an internal address, as that of many clouds.
    WaitsForAddresses,
    /// Keeps Pods off each node by a startup taint of its own, which it removes once it is there.
    StartupTaint {
        /// The taint's key. Kubelets register with the taint ([`NodeSpec::taints`]).
        key: String,
        /// Whether it is there only once the Node has an internal address, as Cilium under kops.
        waits_for_addresses: bool,
    },
}

/// The cluster's DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dns {
    /// No name of the cluster resolves.
    Absent,
    /// A Deployment `coredns` and a Service `kube-dns` exist, as on a cluster made by kubeadm. It knows
    /// [`Settings::names`]; for everything else programs use this computer's resolver.
    Simulated,
}

/// Whether cluster IPs work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceVip {
    /// Programs are told the cluster IP of the Service `kubernetes`, which nothing serves, as before kube-proxy runs.
    Absent,
    /// Programs are told the loopback address of the API server instead, so that it works.
    Shortcut,
}

/// The pod address ranges of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodCidrs {
    /// Nodes get none, as with `--allocate-node-cidrs=false`.
    None,
    /// Each Node gets the first free part of each of these, as with `--cluster-cidr`: one, or one of each family.
    Allocated(Vec<PodRange>),
}

/// A range of pod addresses that is divided among the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodRange {
    /// The first address of the cluster's range.
    pub first: IpAddr,
    /// The length of its prefix in bits.
    pub prefix: u8,
    /// The length of each node's prefix in bits.
    pub node_prefix: u8,
}

/// What the scheduler counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resources {
    /// Requests against what Nodes can give.
    Counted,
    /// Nothing: Nodes are never full.
    Ignored,
}

/// How the paths of volume mounts reach a program that has no container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// [`Mounts::Namespace`] where this machine allows it, else [`Mounts::Rewritten`].
    Detect,
    /// In a user and mount namespace of its own, made by `unshare`.
    Namespace,
    /// Its arguments and environment are rewritten to where the files are.
    Rewritten,
}

/// How fast things go. The defaults are those of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// How often a kubelet renews its Lease (`nodeLeaseDurationSeconds` / 4: 10 s).
    pub lease_renewal: Duration,
    /// The duration a kubelet writes into its Lease (40 s).
    pub lease_duration: Duration,
    /// How often a kubelet posts its status when nothing has changed (`nodeStatusReportFrequency`, 5 min).
    pub status_report: Duration,
    /// How long a kubelet may be silent until its Node is Unknown (`--node-monitor-grace-period`, 50 s).
    pub node_grace: Duration,
    /// The same for a Node whose kubelet has never posted a status (`--node-startup-grace-period`, 60 s).
    pub node_startup_grace: Duration,
    /// How long Pods of a deleted Node are left alone (40 s).
    pub orphan_grace: Duration,
    /// How long a simulated container takes to start.
    pub simulated_start: Duration,
    /// The first pause before a failed container is restarted (10 s; doubles up to the longest).
    pub restart_first: Duration,
    /// The longest pause between restarts (5 min).
    pub restart_longest: Duration,
    /// How long a container must have run well for its pauses to begin anew (10 min).
    pub restart_forgotten: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            lease_renewal: Duration::from_secs(10),
            lease_duration: Duration::from_secs(40),
            status_report: Duration::from_secs(300),
            node_grace: Duration::from_secs(50),
            node_startup_grace: Duration::from_secs(60),
            orphan_grace: Duration::from_secs(40),
            simulated_start: Duration::from_millis(50),
            restart_first: Duration::from_secs(10),
            restart_longest: Duration::from_secs(300),
            restart_forgotten: Duration::from_secs(600),
        }
    }
}

impl Settings {
    /// Why these settings cannot work; empty when they can. Every reason is a sentence.
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
            for PodRange { first, prefix, node_prefix } in ranges {
                // Two addresses at the least for Pods, beside the first two and the last.
                let longest = if first.is_ipv4() { 29 } else { 125 };
                if !(prefix <= node_prefix && *node_prefix <= longest) {
                    problems.push(format!(
                        "a node's pod range of /{node_prefix} does not fit into the cluster's {first}/{prefix}; {longest} is \
                         the longest prefix"
                    ));
                }
            }
            if ranges.is_empty() || !one_of_each_family(ranges.iter().map(|range| range.first)) {
                problems.push("pod ranges have to be one, or one of each IP family".to_owned());
            }
        }
        problems
    }

    /// What is wrong with the addresses of a node.
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

    /// The program this image stands for.
    pub(crate) fn program(&self, image: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.image == image)
    }
}

/// Whether there are no two of the same IP family.
fn one_of_each_family(ips: impl Iterator<Item = IpAddr>) -> bool {
    let mut families = BTreeSet::new();
    ips.into_iter().all(|ip| families.insert(ip.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_named() {
        let mut settings = Settings::new(SocketAddr::from(([10, 0, 0, 1], 443)), String::new());
        settings.nodes = vec![NodeSpec::new("a"), NodeSpec::new("a")];
        settings.nodes[0].loopback = Some(Ipv4Addr::new(10, 0, 0, 2));
        settings.nodes[1].node_ips = vec![IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let range = PodRange { first: IpAddr::from([10, 0, 0, 0]), prefix: 24, node_prefix: 16 };
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
