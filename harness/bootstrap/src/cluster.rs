//! The cluster the manifests are applied to: machines with the taints, labels and addresses they begin with.

use crate::workload::{CONTROL_PLANE, Effect, Labels, MASTER, Taint};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which machines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One control plane without its taint, as kind makes it and as kubeadm's documentation says to.
    SingleNode,
    /// One control plane with its taint, and one worker.
    ControlPlaneAndWorker,
    /// Three control planes with their taints, no worker.
    ThreeControlPlanes,
    /// The control plane and the CCM run elsewhere, on a cluster that is up; here are two workers.
    Hosted,
    /// The control plane runs elsewhere, the CCM here, on two workers. Tried only when asked for.
    WorkerOnly,
}

impl Topology {
    /// Those that are tried when none is named.
    pub const DEFAULT: &[Topology] = &[
        Topology::SingleNode,
        Topology::ControlPlaneAndWorker,
        Topology::ThreeControlPlanes,
        Topology::Hosted,
    ];

    /// How many control planes and workers.
    fn machines(self) -> (u32, u32) {
        match self {
            Topology::SingleNode => (1, 0),
            Topology::ControlPlaneAndWorker => (1, 1),
            Topology::ThreeControlPlanes => (3, 0),
            Topology::Hosted | Topology::WorkerOnly => (0, 2),
        }
    }
}

/// How the pod network comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cni {
    /// There is none but what the manifests bring.
    None,
    /// It needs nothing from the CCM.
    Independent,
    /// On each Node it waits until the Node has an address.
    WaitsForAddresses,
    /// It needs nothing from the CCM, and its own taint keeps Pods off a Node until it is set up there.
    StartupTaint,
    /// Both: its own taint, and it waits for addresses (kops with Cilium). Tried only when asked for.
    StartupTaintAndWaits,
    /// kind's: a DaemonSet that reads `status.hostIP`, tolerates everything. Tried only when asked for.
    Kindnet,
}

impl Cni {
    /// Those that are tried when none is named.
    pub const DEFAULT: &[Cni] = &[Cni::None, Cni::Independent, Cni::WaitsForAddresses, Cni::StartupTaint];

    /// Whether it waits for addresses of the Node.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Cni::WaitsForAddresses | Cni::StartupTaintAndWaits | Cni::Kindnet)
    }

    /// Whether it has a startup taint.
    pub(crate) fn taints(self) -> bool {
        matches!(self, Cni::StartupTaint | Cni::StartupTaintAndWaits)
    }
}

/// Who answers on Service addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeProxy {
    /// kube-proxy on every Node, as kubeadm sets it up: on the host's network, tolerating everything.
    #[default]
    Yes,
    /// Nobody.
    No,
    /// The CNI, once it is set up on a Node.
    Cni,
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum YesNo {
    /// It is.
    Yes,
    /// It is not.
    #[default]
    No,
}

/// How the CCM names its cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudEndpoint {
    /// By what the manifests show; a name when they show nothing.
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

/// A Kubernetes version, as far as boot depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Version {
    /// Always 1.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl Version {
    /// What is assumed when no version is named.
    pub const DEFAULT: Version = Version { major: 1, minor: 36 };
}

impl std::str::FromStr for Version {
    type Err = String;

    /// Reads `1.36`, `v1.36` or `1.36.2`.
    fn from_str(text: &str) -> Result<Version, String> {
        let mut parts = text.trim_start_matches('v').split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(1)), Some(Ok(minor))) if minor >= 20 => Ok(Version { major: 1, minor }),
            _ => Err(format!("'{text}' is not a Kubernetes version from 1.20 on; write e.g. 1.36")),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A machine that is in place of the topology's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedMachine {
    /// Whether it is a control plane; else it is a worker.
    pub control_plane: bool,
    /// Whether it has the taints that kubeadm gives control planes.
    pub kubeadms_taints: bool,
    /// Taints it has besides.
    pub taints: Vec<Taint>,
    /// Labels it has besides the usual ones.
    pub labels: BTreeMap<String, String>,
}

/// Everything about the cluster but the manifests: one cell of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Which machines there are.
    pub topology: Topology,
    /// How the pod network comes up.
    pub cni: Cni,
    /// Who answers on Service addresses.
    pub kube_proxy: KubeProxy,
    /// Whether kubelets are given `--node-ip`; kind does that.
    pub node_ip: YesNo,
    /// Kubernetes version.
    pub version: Version,
    /// Taints of control planes in place of kubeadm's; `None` for kubeadm's.
    pub control_plane_taints: Option<Vec<Taint>>,
    /// The CNI's startup taint.
    pub startup_taint: Taint,
    /// Whether Nodes begin with `NetworkUnavailable`, cleared by the CCM's route controller: a CCM with routes that is
    /// restarted.
    pub routes: YesNo,
    /// How the CCM names its cloud.
    pub cloud_endpoint: CloudEndpoint,
    /// Machines in place of the topology's.
    pub machines: Option<Vec<PlannedMachine>>,
    /// Labels that every Node has besides the usual ones.
    pub node_labels: BTreeMap<String, String>,
}

impl Cluster {
    /// A cluster with every other property at its default.
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
    pub(crate) fn addressed(&self) -> bool {
        self.node_ip == YesNo::Yes || self.version.minor < 29
    }

    /// The machines.
    pub(crate) fn machines(&self) -> Vec<Machine> {
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
            // Who runs a single kubeadm node takes its taint off; taints that were asked for stay.
            let untainted = control_planes + workers == 1 && self.control_plane_taints.is_none();
            let taints = if untainted { Vec::new() } else { self.taints_of_control_planes() };
            machines.push(self.machine(name, taints, true));
        }
        for index in 1..=workers {
            let name = if workers == 1 { String::from("worker") } else { format!("worker-{index}") };
            machines.push(self.machine(name, Vec::new(), false));
        }
        machines
    }

    /// Machines that were asked for one by one.
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

    /// What people call it: its topology, or how many machines of which kind it has.
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

    /// kubeadm: `master` until 1.23, both in 1.24, `control-plane` from 1.25 on (`cmd/kubeadm/app/constants`).
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
            // kind takes this one off a single node, as it does with the taint.
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

/// A machine as it registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// Taints that nobody removes.
    pub(crate) taints: Vec<Taint>,
    pub(crate) labels: Labels,
    pub(crate) control_plane: bool,
}
