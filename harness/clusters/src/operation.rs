//! Operations on the machines of a cluster, as data: each operation belongs to a facility, and a backend that declares
//! the facility carries it out.

use super::record::Machine;
use harness_components::image_credentials::NodeSetup;
use harness_core::check::Facility;
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// An operation on a machine, or on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// On a machine's kubelet.
    Kubelet {
        /// The machine.
        machine: &'a Machine,
        /// The operation.
        op: KubeletOp,
    },
    /// On the image credential provider of a machine's kubelet, and the addresses of some registries. The kubelet is
    /// restarted.
    ImageCredentials {
        /// The machine.
        machine: &'a Machine,
        /// What to install.
        setup: &'a NodeSetup,
        /// The operation.
        op: SetupOp,
    },
    /// On direct connections from the machines of the control plane to Nodes and Pods: new ones are refused.
    DirectWay {
        /// The destinations, in the form of a packet filter.
        to: &'a [String],
        /// The operation.
        op: LinkOp,
    },
    /// On a machine's power.
    Power {
        /// The machine.
        machine: &'a Machine,
        /// The operation.
        op: PowerOp,
    },
    /// On a machine's connection. Packets of the machine and its Pods to `to` are dropped, those of open connections too;
    /// doing it twice has no further effect.
    Link {
        /// The machine.
        machine: &'a Machine,
        /// The destination.
        to: Target,
        /// The operation.
        op: LinkOp,
    },
    /// On the processes of a container. `id` is the container runtime's, with or without the runtime's name in front.
    Container {
        /// The machine it runs on.
        machine: &'a Machine,
        /// Its id, as in the Pod's status.
        id: &'a str,
        /// The operation.
        op: ContainerOp,
    },
    /// On the watches of Pods at the API server.
    Watches(WatchOp),
    /// On the connections of Pods to the API server.
    ApiServer(ApiReach<'a>),
    /// On the pod network of all machines at once. Kubelets notice within seconds.
    PodNetwork(&'a PodNetwork),
    /// On the Kubernetes version of a part of the cluster.
    Upgrade {
        /// The part.
        part: Part<'a>,
        /// Its new minor version: 36 for Kubernetes 1.36.
        minor: u32,
    },
    /// Withholds pod CIDRs from new Nodes, or assigns them again, within a second also to Nodes that lack them.
    PodCidrs {
        /// Whether they are withheld.
        withheld: bool,
    },
}

/// A part of a cluster that has a version of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// API server, scheduler and controller manager.
    ControlPlane {
        /// For how long Pods cannot reach the API server, if replacing it takes no time by itself.
        away: Duration,
    },
    /// The kubelet of a machine, which starts at once and takes its Node over.
    Kubelet(&'a Machine),
}

/// Operations on a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletOp {
    /// Started, after it was stopped.
    Start,
    /// Stopped: its Pods continue to run, its Node becomes Unknown.
    Stop,
    /// Restarted: it registers its Node if that is gone (contract ENV-06).
    Restart,
}

/// Operations on the files of a plugin on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupOp {
    /// They are installed.
    Install,
    /// They are removed without a trace.
    Remove,
}

/// Operations on a machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOp {
    /// Off at once, like a power failure; returns when it is off.
    Off,
    /// On; returns when its services have been started.
    On,
}

/// Operations on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOp {
    /// Blocked.
    Cut,
    /// Restored.
    Restore,
}

/// The destination from which a machine is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything at this address, e.g. the cloud's API, for connections that the machine opens.
    Cloud(IpAddr),
    /// The API server on this machine, port 6443; its other ports can still be reached.
    ApiServer(IpAddr),
}

/// Operations on the processes of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerOp {
    /// Its first process is killed (SIGKILL), as a crash would.
    Kill,
    /// Its first process gets SIGTERM.
    Terminate,
    /// All processes are frozen.
    Freeze,
    /// Frozen processes are resumed.
    Thaw,
}

/// Operations on watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOp {
    /// They end, and new ones are refused until they are expired, so that changes in between are missed. The API server
    /// may be away for some seconds for it.
    Interrupt,
    /// They are allowed again; one that missed a change is answered with 410, as its resource version is too old.
    Expire,
}

/// Which clients reach the API server. For those that do not, requests have no effect and watches get no events until
/// they are allowed again; the backend decides whether they are refused or get no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiReach<'a> {
    /// All Pods.
    All,
    /// No Pod of the CCM, and no other Pod that cannot be distinguished from them because it is on its machine's network.
    None,
    /// All except these.
    AllBut(&'a [PodTraffic]),
}

/// A Pod, and how its packets are identified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTraffic {
    /// Its name.
    pub name: String,
    /// Its addresses on the pod network; none for a Pod on its machine's network.
    pub addresses: Vec<IpAddr>,
    /// The supplementary groups of its processes.
    pub groups: Vec<u32>,
    /// The id of the token that identifies it to the API server of another cluster, which it serves from outside.
    pub token: Option<String>,
}

impl PodTraffic {
    /// The identity of a Pod.
    pub fn of(pod: &Pod) -> PodTraffic {
        let spec = pod.spec.clone().unwrap_or_default();
        let apart = spec.host_network != Some(true);
        let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten()).filter(|_| apart);
        let groups =
            spec.security_context.and_then(|context| context.supplemental_groups).unwrap_or_default();
        PodTraffic {
            name: pod.metadata.name.clone().unwrap_or_default(),
            addresses: ips.filter_map(|ip| ip.ip.parse().ok()).collect(),
            groups: groups.into_iter().filter_map(|group| u32::try_from(group).ok()).collect(),
            token: None,
        }
    }
}

/// Whether there is a pod network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// There is one, with these pod CIDRs (`spec.podCIDRs`) by Node.
    Present(BTreeMap<String, Vec<String>>),
    /// There is none: kubelets report NotReady. Pods that use it must be removed before; their removal would wait until
    /// it is back.
    Absent,
}

impl Operation<'_> {
    /// The facility that a cluster must have for it.
    pub fn facility(&self) -> Facility {
        match self {
            Operation::Kubelet { .. } => Facility::KubeletControl,
            Operation::ImageCredentials { .. } => Facility::ImageCredentials,
            Operation::DirectWay { .. } => Facility::NetworkProxy,
            Operation::Power { .. } => Facility::NodeControl,
            Operation::Link { .. } => Facility::LinkControl,
            Operation::Container { .. } => Facility::ProcessControl,
            Operation::Watches(_) => Facility::WatchControl,
            Operation::ApiServer(_) => Facility::ApiControl,
            Operation::PodNetwork(_) => Facility::PodNetworkControl,
            Operation::PodCidrs { .. } => Facility::PodCidrControl,
            Operation::Upgrade { .. } => Facility::VersionControl,
        }
    }
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Kubelet { machine, op } => {
                let done = match op {
                    KubeletOp::Start => "starting",
                    KubeletOp::Stop => "stopping",
                    KubeletOp::Restart => "restarting",
                };
                write!(f, "{done} the kubelet of {}", machine.name)
            }
            Operation::ImageCredentials { machine, op, .. } => {
                let done = match op {
                    SetupOp::Install => "installing an image credential provider on",
                    SetupOp::Remove => "removing an image credential provider from",
                };
                write!(f, "{done} {}", machine.name)
            }
            Operation::DirectWay { to, op } => {
                let done = if *op == LinkOp::Cut { "closing" } else { "opening" };
                write!(f, "{done} the direct way from the control plane to {}", to.join(", "))
            }
            Operation::Power { machine, op: PowerOp::Off } => write!(f, "switching {} off", machine.name),
            Operation::Power { machine, op: PowerOp::On } => write!(f, "switching {} on", machine.name),
            Operation::Link { machine, to, op } => {
                let (done, from) = match op {
                    LinkOp::Cut => ("cutting", "off from"),
                    LinkOp::Restore => ("connecting", "again with"),
                };
                match to {
                    Target::Cloud(ip) => write!(f, "{done} {} {from} the cloud at {ip}", machine.name),
                    Target::ApiServer(ip) => {
                        write!(f, "{done} {} {from} the API server at {ip}", machine.name)
                    }
                }
            }
            Operation::Container { machine, id, op } => {
                let done = match op {
                    ContainerOp::Kill => "killing",
                    ContainerOp::Terminate => "ending",
                    ContainerOp::Freeze => "freezing",
                    ContainerOp::Thaw => "thawing",
                };
                write!(f, "{done} container {id} on {}", machine.name)
            }
            Operation::Watches(WatchOp::Interrupt) => f.write_str("interrupting watches"),
            Operation::Watches(WatchOp::Expire) => f.write_str("expiring watches"),
            Operation::ApiServer(ApiReach::All) => f.write_str("letting all Pods reach the API server"),
            Operation::ApiServer(ApiReach::None) => f.write_str("cutting all Pods off from the API server"),
            Operation::ApiServer(ApiReach::AllBut(pods)) => {
                let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
                write!(f, "cutting Pods {} off from the API server", names.join(", "))
            }
            Operation::PodNetwork(PodNetwork::Present(_)) => f.write_str("setting up the pod network"),
            Operation::PodNetwork(PodNetwork::Absent) => f.write_str("removing the pod network"),
            Operation::Upgrade { part: Part::ControlPlane { .. }, minor } => {
                write!(f, "moving the control plane to Kubernetes 1.{minor}")
            }
            Operation::Upgrade { part: Part::Kubelet(machine), minor } => {
                write!(f, "moving the kubelet of {} to Kubernetes 1.{minor}", machine.name)
            }
            Operation::PodCidrs { withheld: true } => f.write_str("withholding pod CIDRs"),
            Operation::PodCidrs { withheld: false } => f.write_str("allocating pod CIDRs again"),
        }
    }
}
