//! What can be done to the machines of a cluster, as data: each operation belongs to a facility, and a backend that
//! declares the facility carries it out.

use super::record::Machine;
use harness_components::image_credentials::NodeSetup;
use harness_core::check::Facility;
use k8s_openapi::api::core::v1::Pod;
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
    /// To the direct way from the machines of the control plane to Nodes and Pods: connections that begin there are refused.
    DirectWay {
        /// The other ends, as a packet filter takes them.
        to: &'a [String],
        /// What.
        op: LinkOp,
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
    /// Everything at this address, e.g. the cloud's API, as far as the machine begins to speak.
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
    /// They end, and none begins until they are expired: what changes meanwhile nobody is told. The API server may be away for
    /// some seconds for it.
    Interrupt,
    /// They may begin again, and one that missed a change is answered with 410: it is too old to go on.
    Expire,
}

/// Who reaches the API server. What those out of reach ask changes nothing, and their watches tell them nothing, until they are
/// within reach again; whether they are refused or hear nothing is the backend's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiReach<'a> {
    /// All Pods.
    All,
    /// No Pod of the CCM, nor any other but those of machines' own networks that nothing tells apart.
    None,
    /// All but these.
    AllBut(&'a [PodTraffic]),
}

/// A Pod, and what tells its packets from others'.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTraffic {
    /// Its name.
    pub name: String,
    /// Its addresses on the pod network; none of a Pod on its machine's network.
    pub addresses: Vec<IpAddr>,
    /// The supplementary groups of its processes.
    pub groups: Vec<u32>,
    /// The id of the token by which the API server of another cluster knows it, which it serves from outside.
    pub token: Option<String>,
}

impl PodTraffic {
    /// That of a Pod.
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
            Operation::DirectWay { .. } => Facility::NetworkProxy,
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
            Operation::DirectWay { to, op } => {
                let done = if *op == LinkOp::Cut { "closing" } else { "opening" };
                write!(f, "{done} the direct way from the control plane to {}", to.join(", "))
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
                let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
                write!(f, "cutting Pods {} off from the API server", names.join(", "))
            }
            Operation::PodNetwork(PodNetwork::Present(_)) => f.write_str("setting the pod network up"),
            Operation::PodNetwork(PodNetwork::Absent) => f.write_str("taking the pod network away"),
            Operation::PodCidrs { withheld: true } => f.write_str("withholding pod CIDRs"),
            Operation::PodCidrs { withheld: false } => f.write_str("allocating pod CIDRs again"),
        }
    }
}
