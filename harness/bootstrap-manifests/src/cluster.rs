//! The cluster to which the manifests are applied: machines with their initial taints, labels and addresses.

use crate::workload::{CONTROL_PLANE, Effect, Labels, MASTER, Taint};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Labels that the CCM writes when it initialises a Node (contract area NODE-LBL).
pub const CLOUD_LABELS: &[&str] = &[
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
];

/// The machines of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One control plane without its taint, as kind creates it and as kubeadm's documentation recommends.
    SingleNode,
    /// One control plane that keeps its taint, as kubeadm creates it.
    SingleControlPlane,
    /// One control plane with its taint, and one worker.
    ControlPlaneAndWorker,
    /// Three control planes with their taints, no worker.
    ThreeControlPlanes,
    /// The control plane and the CCM run on a management cluster that is up; this cluster has two workers.
    Hosted,
    /// The control plane runs elsewhere, the CCM on this cluster's two workers. Checked only on request.
    WorkerOnly,
}

impl Topology {
    /// The topologies that are checked by default.
    pub const DEFAULT: &[Topology] = &[
        Topology::SingleNode,
        Topology::SingleControlPlane,
        Topology::ControlPlaneAndWorker,
        Topology::ThreeControlPlanes,
        Topology::Hosted,
    ];

    /// The numbers of control planes and workers.
    fn machines(self) -> (u32, u32) {
        match self {
            Topology::SingleNode | Topology::SingleControlPlane => (1, 0),
            Topology::ControlPlaneAndWorker => (1, 1),
            Topology::ThreeControlPlanes => (3, 0),
            Topology::Hosted | Topology::WorkerOnly => (0, 2),
        }
    }
}

/// How the pod network is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cni {
    /// There is no network plugin except one in the manifests.
    None,
    /// It does not depend on the CCM.
    Independent,
    /// On each Node it waits for an address of the Node.
    WaitsForAddresses,
    /// It does not depend on the CCM, and its own taint keeps Pods off a Node until the network is set up there.
    StartupTaint,
    /// Both: it has its own taint and waits for addresses (kops with Cilium). Checked only on request.
    StartupTaintAndWaits,
    /// The one of kind: a DaemonSet that reads `status.hostIP` and tolerates all taints. Checked only on request.
    Kindnet,
}

impl Cni {
    /// The CNIs that are checked by default.
    pub const DEFAULT: &[Cni] = &[Cni::None, Cni::Independent, Cni::WaitsForAddresses, Cni::StartupTaint];

    /// Whether it waits for the Node's addresses.
    pub fn waits(self) -> bool {
        matches!(self, Cni::WaitsForAddresses | Cni::StartupTaintAndWaits | Cni::Kindnet)
    }

    /// Whether it has a startup taint.
    pub fn taints(self) -> bool {
        matches!(self, Cni::StartupTaint | Cni::StartupTaintAndWaits)
    }
}

/// What serves Service addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeProxy {
    /// kube-proxy on every Node, as kubeadm sets it up: on the host's network, tolerating all taints.
    #[default]
    Yes,
    /// Nothing.
    No,
    /// The CNI, once it is set up on the Node.
    Cni,
}

/// Yes or no, as an option of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum YesNo {
    /// Yes.
    Yes,
    /// No.
    #[default]
    No,
}

/// How the CCM reaches its cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudEndpoint {
    /// As the manifests show; by name if they do not show it.
    #[default]
    Auto,
    /// By a DNS name.
    Name,
    /// By an IP address.
    Address,
}

macro_rules! display_by_value_name {
    ($($kind:ty),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.to_possible_value() {
                    Some(value) => f.pad(value.get_name()),
                    None => Ok(()),
                }
            }
        }
    )*};
}
display_by_value_name!(Topology, Cni, KubeProxy, YesNo, CloudEndpoint);

/// A Kubernetes version, as far as the boot depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Version {
    /// Always 1.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl Version {
    /// The version that is assumed by default.
    pub const DEFAULT: Version = Version { major: 1, minor: 36 };
}

impl std::str::FromStr for Version {
    type Err = String;

    /// Reads `1.36`, `v1.36` or `1.36.2`.
    fn from_str(text: &str) -> Result<Version, String> {
        let mut parts = text.trim_start_matches('v').split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(1)), Some(Ok(minor))) if minor >= 20 => Ok(Version { major: 1, minor }),
            _ => Err(format!("invalid Kubernetes version '{text}': expected 1.20 or newer, e.g. 1.36")),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A machine that replaces those of the topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedMachine {
    /// Whether it is a control plane; otherwise it is a worker.
    pub control_plane: bool,
    /// Whether it has the taints that kubeadm sets on control planes.
    pub kubeadms_taints: bool,
    /// Its additional taints.
    pub taints: Vec<Taint>,
    /// Its labels in addition to the usual ones.
    pub labels: BTreeMap<String, String>,
}

/// All properties of the cluster except the manifests: one cell of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The machines.
    pub topology: Topology,
    /// How the pod network is set up.
    pub cni: Cni,
    /// What serves Service addresses.
    pub kube_proxy: KubeProxy,
    /// Whether kubelets run with `--node-ip`, as those of kind do.
    pub node_ip: YesNo,
    /// Kubernetes version.
    pub version: Version,
    /// Taints of control planes that replace kubeadm's; `None` for kubeadm's.
    pub control_plane_taints: Option<Vec<Taint>>,
    /// The CNI's startup taint.
    pub startup_taint: Taint,
    /// Whether Nodes start with the condition `NetworkUnavailable`, which the CCM's route controller clears: this is the
    /// case when a CCM with routes is restarted.
    pub routes: YesNo,
    /// How the CCM reaches its cloud.
    pub cloud_endpoint: CloudEndpoint,
    /// Machines that replace those of the topology.
    pub machines: Option<Vec<PlannedMachine>>,
    /// Labels of every Node in addition to the usual ones.
    pub node_labels: BTreeMap<String, String>,
}

impl Cluster {
    /// A cluster with default values for all other properties.
    pub fn new(topology: Topology, cni: Cni) -> Cluster {
        Cluster {
            topology,
            cni,
            kube_proxy: KubeProxy::Yes,
            node_ip: YesNo::No,
            version: Version::DEFAULT,
            control_plane_taints: None,
            startup_taint: Taint::new("node.cilium.io/agent-not-ready", "", Effect::NoExecute),
            routes: YesNo::No,
            cloud_endpoint: CloudEndpoint::Auto,
            machines: None,
            node_labels: BTreeMap::new(),
        }
    }

    /// Whether a Node has an address before the CCM works. Without `--node-ip` the kubelet guesses one until 1.28 and
    /// waits for the cloud from 1.29 on (`pkg/kubelet/nodestatus/setters.go`, kubernetes#121028).
    pub fn addressed(&self) -> bool {
        self.node_ip == YesNo::Yes || self.version.minor < 29
    }

    /// The machines.
    pub fn machines(&self) -> Vec<Machine> {
        if let Some(planned) = &self.machines {
            return self.planned(planned);
        }
        let (control_planes, workers) = self.topology.machines();
        let mut machines = Vec::new();
        for index in 1..=control_planes {
            let name = if control_planes == 1 {
                String::from("control-plane")
            } else {
                format!("control-plane-{index}")
            };
            // Taints that were requested stay.
            let untainted = self.topology == Topology::SingleNode && self.control_plane_taints.is_none();
            let taints = if untainted { Vec::new() } else { self.taints_of_control_planes() };
            machines.push(self.machine(name, taints, true));
        }
        for index in 1..=workers {
            let name = if workers == 1 { String::from("worker") } else { format!("worker-{index}") };
            machines.push(self.machine(name, Vec::new(), false));
        }
        machines
    }

    /// The machines that were requested individually.
    fn planned(&self, planned: &[PlannedMachine]) -> Vec<Machine> {
        let mut counts = [0_u32; 2];
        let all = planned.iter().map(|one| {
            let (role, count) = match one.control_plane {
                true => ("control-plane", &mut counts[0]),
                false => ("worker", &mut counts[1]),
            };
            *count += 1;
            let same = planned.iter().filter(|other| other.control_plane == one.control_plane).count();
            let name = if same == 1 { role.to_owned() } else { format!("{role}-{count}") };
            let mut taints = if one.kubeadms_taints { self.taints_of_control_planes() } else { Vec::new() };
            taints.extend(one.taints.iter().cloned());
            let mut machine = self.machine(name, taints, one.control_plane);
            machine.labels.extend(one.labels.clone());
            machine
        });
        all.collect()
    }

    /// A name for people: the topology, or the numbers of machines of each kind.
    pub fn title(&self) -> String {
        let Some(planned) = self.machines.as_ref().filter(|planned| planned.len() > 1) else {
            return self.topology.to_string();
        };
        let control_planes = planned.iter().filter(|machine| machine.control_plane).count();
        let workers = planned.len() - control_planes;
        let tainted = planned.iter().filter(|machine| machine.kubeadms_taints || !machine.taints.is_empty());
        let many = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut parts = vec![many(control_planes, "control plane")];
        parts.extend((workers > 0).then(|| many(workers, "worker")));
        match tainted.count() {
            0 => format!("{} (none tainted)", parts.join(" and ")),
            tainted => format!("{} ({tainted} tainted)", parts.join(" and ")),
        }
    }

    /// The taint that kubeadm sets: `master` until 1.23, both in 1.24, `control-plane` from 1.25 on
    /// (`cmd/kubeadm/app/constants`).
    fn taints_of_control_planes(&self) -> Vec<Taint> {
        if let Some(taints) = &self.control_plane_taints {
            return taints.clone();
        }
        let keys: &[&str] = match self.version.minor {
            ..24 => &[MASTER],
            24 => &[MASTER, CONTROL_PLANE],
            25.. => &[CONTROL_PLANE],
        };
        keys.iter().map(|key| Taint::new(key, "", Effect::NoSchedule)).collect()
    }

    fn machine(&self, name: String, taints: Vec<Taint>, control_plane: bool) -> Machine {
        let mut labels: Labels = self.node_labels.clone();
        labels.insert(String::from("kubernetes.io/hostname"), name.clone());
        for prefix in ["", "beta."] {
            labels.insert(format!("{prefix}kubernetes.io/os"), String::from("linux"));
            labels.insert(format!("{prefix}kubernetes.io/arch"), String::from("amd64"));
        }
        if control_plane {
            labels.insert(CONTROL_PLANE.to_owned(), String::new());
            // The old label until 1.23 (kubernetes/kubeadm#2200).
            if self.version.minor < 24 {
                labels.insert(MASTER.to_owned(), String::new());
            }
            // kind removes this label from a single node, together with the taint.
            if !taints.is_empty() {
                labels.insert(
                    String::from("node.kubernetes.io/exclude-from-external-load-balancers"),
                    String::new(),
                );
            }
        }
        Machine { name, taints, labels, control_plane }
    }
}

/// A machine as it registers with the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of its Node.
    pub name: String,
    /// Taints that are never removed.
    pub taints: Vec<Taint>,
    /// The labels with which it registers.
    pub labels: Labels,
    /// Whether the control plane runs on it.
    pub control_plane: bool,
}
