//! What can be done to the machines of a cluster, as data: each operation belongs to a facility, and a backend that
//! declares the facility carries it out.

use super::record::Machine;
use crate::check::Facility;
use crate::image_credentials::NodeSetup;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// Something done to a machine, or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// To a machine's kubelet.
    Kubelet {
        /// The machine.
        machine: &'a Machine,
        /// What.
        op: KubeletOp,
    },
    /// To what a machine's kubelet runs for the credentials of images, and where those of some registries are. The kubelet
    /// is restarted.
    ImageCredentials {
        /// The machine.
        machine: &'a Machine,
        /// What it is to have.
        setup: &'a NodeSetup,
        /// What.
        op: SetupOp,
    },
    /// To a machine's power.
    Power {
        /// The machine.
        machine: &'a Machine,
        /// What.
        op: PowerOp,
    },
    /// To a machine's connection. Packets of the machine and its Pods to `to` vanish, those of open connections too;
    /// twice is as once.
    Link {
        /// The machine.
        machine: &'a Machine,
        /// The other end.
        to: Target,
        /// What.
        op: LinkOp,
    },
    /// To the processes of a container. `id` is the container runtime's, with or without its name before it.
    Container {
        /// The machine it runs on.
        machine: &'a Machine,
        /// Its id, as the Pod's status has it.
        id: &'a str,
        /// What.
        op: ContainerOp,
    },
    /// To the watches that Pods have at the API server.
    Watches(WatchOp),
    /// To the way from Pods to the API server.
    ApiServer(ApiReach<'a>),
    /// To the pod network of all machines at once. Kubelets notice within seconds.
    PodNetwork(&'a PodNetwork),
    /// New Nodes get no pod CIDRs from now on, or, when not withheld, those that lack them within a second.
    PodCidrs {
        /// Whether they get none.
        withheld: bool,
    },
}

/// What is done to a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletOp {
    /// Started, after it was stopped.
    Start,
    /// Stopped: its Pods run on, its Node turns Unknown.
    Stop,
    /// Started from the beginning: it registers its Node when that is gone (contract ENV-06).
    Restart,
}

/// What is done to what a machine has of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupOp {
    /// It is put there.
    Install,
    /// As if it had never been there.
    Remove,
}

/// What is done to a machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOp {
    /// Off at once, as a power failure would; ends when it is off.
    Off,
    /// On; ends when its services have been started.
    On,
}

/// What is done to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOp {
    /// Cut.
    Cut,
    /// As if it had never been cut.
    Mend,
}

/// What a machine is cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything at this address, e.g. the cloud's API.
    Cloud(IpAddr),
    /// The API server on this machine, port 6443; what else the machine offers stays within reach.
    ApiServer(IpAddr),
}

/// What is done to the processes of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerOp {
    /// Its first process is killed (SIGKILL), as a crash would.
    Kill,
    /// Its first process is asked to end (SIGTERM).
    Terminate,
    /// Every process is frozen.
    Freeze,
    /// Frozen processes go on.
    Thaw,
}

/// What is done to watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOp {
    /// They end, and none begins until they are expired: what changes meanwhile nobody is told.
    Interrupt,
    /// They may begin again, and one that missed a change is answered with 410: it is too old to go on.
    Expire,
}

/// Who reaches the API server. Watches of Pods end when that changes, and what those out of reach ask is heard when they are
/// within reach again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiReach<'a> {
    /// All Pods.
    All,
    /// None.
    None,
    /// All but the Pods of these names.
    AllBut(&'a [String]),
    /// All but who has these tokens, by their ids: Pods of another cluster.
    AllButTokens(&'a [String]),
}

/// Whether there is a pod network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodNetwork {
    /// There is one, with these pod CIDRs (`spec.podCIDRs`) by Node.
    Present(BTreeMap<String, Vec<String>>),
    /// There is none: kubelets report NotReady. Pods that are on it must be gone before; their removal would wait until
    /// it is back.
    Absent,
}

impl Operation<'_> {
    /// What a cluster must be able to do for it.
    pub fn facility(&self) -> Facility {
        match self {
            Operation::Kubelet { .. } => Facility::KubeletControl,
            Operation::ImageCredentials { .. } => Facility::ImageCredentials,
            Operation::Power { .. } => Facility::NodeControl,
            Operation::Link { .. } => Facility::LinkControl,
            Operation::Container { .. } => Facility::ProcessControl,
            Operation::Watches(_) => Facility::WatchControl,
            Operation::ApiServer(_) => Facility::ApiControl,
            Operation::PodNetwork(_) => Facility::PodNetworkControl,
            Operation::PodCidrs { .. } => Facility::PodCidrControl,
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
                    SetupOp::Install => "giving an image credential provider to",
                    SetupOp::Remove => "taking an image credential provider from",
                };
                write!(f, "{done} {}", machine.name)
            }
            Operation::Power { machine, op: PowerOp::Off } => write!(f, "switching {} off", machine.name),
            Operation::Power { machine, op: PowerOp::On } => write!(f, "switching {} on", machine.name),
            Operation::Link { machine, to, op } => {
                let (done, from) = match op {
                    LinkOp::Cut => ("cutting", "off from"),
                    LinkOp::Mend => ("connecting", "again with"),
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
                write!(f, "cutting Pods {} off from the API server", pods.join(", "))
            }
            Operation::ApiServer(ApiReach::AllButTokens(ids)) => {
                write!(f, "cutting whoever has token {} off from the API server", ids.join(", "))
            }
            Operation::PodNetwork(PodNetwork::Present(_)) => f.write_str("setting the pod network up"),
            Operation::PodNetwork(PodNetwork::Absent) => f.write_str("taking the pod network away"),
            Operation::PodCidrs { withheld: true } => f.write_str("withholding pod CIDRs"),
            Operation::PodCidrs { withheld: false } => f.write_str("allocating pod CIDRs again"),
        }
    }
}
