//! What a cluster shall be like.

use crate::addresses::IpFamilies;
use crate::machine::{MachineSpec, Role};
use crate::version::KubernetesVersion;
use embedded_controllers::{Controller, Dns, Pace, PodNetwork, Program, ServiceVip};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// What a cluster is like. Start from a constructor and change what shall be different:
///
/// ```
/// use embedded_cluster::{ClusterSpec, Controller, Program};
///
/// let spec = ClusterSpec {
///     controllers: Controller::all_but(&[Controller::Deployment]),
///     programs: vec![Program::new("my-operator:test", ["target/debug/my-operator"])],
///     ..ClusterSpec::of_nodes(3)
/// };
/// assert_eq!(spec.machines.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    /// Its machines, control planes first.
    pub machines: Vec<MachineSpec>,
    /// Which controllers run; see [`Controller::all_but`].
    pub controllers: BTreeSet<Controller>,
    /// Version of Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// The IP families of machines, Pods and Services.
    pub families: IpFamilies,
    /// Which images are programs of this computer; Pods of all others are simulated.
    pub programs: Vec<Program>,
    /// The pod network at first.
    pub network: PodNetwork,
    /// Whether Service addresses lead anywhere.
    pub services: ServiceVip,
    /// Whether there is a cluster DNS.
    pub dns: Dns,
    /// Names that the machines' resolvers know, and cluster DNS with them.
    pub names: BTreeMap<String, IpAddr>,
    /// How fast things go.
    pub pace: Pace,
    /// Where files of Pods are kept; `None` for a folder of its own among the system's temporary files.
    pub folder: Option<PathBuf>,
}

impl ClusterSpec {
    /// A cluster of these machines with all controllers, a pod network that needs nobody, working Service addresses and
    /// no DNS.
    #[must_use]
    pub fn new(machines: Vec<MachineSpec>) -> ClusterSpec {
        ClusterSpec {
            machines,
            controllers: Controller::ALL.into(),
            kubernetes: KubernetesVersion::default(),
            families: IpFamilies::Ipv4,
            programs: Vec::new(),
            network: PodNetwork::Independent,
            services: ServiceVip::Shortcut,
            dns: Dns::Absent,
            names: BTreeMap::new(),
            pace: Pace::default(),
            folder: None,
        }
    }

    /// An API server alone, without machines and controllers: objects stay as they are written, as with envtest.
    /// A namespace that is deleted stays `Terminating`, as nobody empties it.
    #[must_use]
    pub fn api_server() -> ClusterSpec {
        ClusterSpec { controllers: BTreeSet::new(), ..ClusterSpec::new(Vec::new()) }
    }

    /// A cluster of so many machines named `node-0` and on, ready for Pods: the first a control plane, the others workers.
    #[must_use]
    pub fn of_nodes(nodes: u32) -> ClusterSpec {
        ClusterSpec::new(machines(nodes, MachineSpec::new))
    }

    /// The same with machines that wait for a cloud controller manager and announce their addresses.
    #[must_use]
    pub fn awaiting_cloud(nodes: u32) -> ClusterSpec {
        let machine = |name: String, role| MachineSpec {
            node_ip: crate::NodeIp::Announced,
            ..MachineSpec::awaiting_cloud(name, role)
        };
        ClusterSpec::new(machines(nodes, machine))
    }
}

fn machines(nodes: u32, machine: impl Fn(String, Role) -> MachineSpec) -> Vec<MachineSpec> {
    let role = |index| if index == 0 { Role::ControlPlane } else { Role::Worker };
    let named =
        |index| MachineSpec { kubeadm_taint: nodes > 1, ..machine(format!("node-{index}"), role(index)) };
    (0..nodes).map(named).collect()
}
