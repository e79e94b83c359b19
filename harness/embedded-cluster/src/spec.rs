//! The description of a cluster.

use crate::addresses::IpFamilies;
use crate::machine::{MachineSpec, Role};
use crate::version::KubernetesVersion;
use embedded_controllers::{Controller, Dns, Pace, PodNetwork, Program, ServiceVip};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

/// The description of a cluster. Start with a constructor and change fields as needed:
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
    /// The controllers that run; see [`Controller::all_but`].
    pub controllers: BTreeSet<Controller>,
    /// Version of Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// The IP families of machines, Pods and Services.
    pub families: IpFamilies,
    /// The images that stand for programs of this computer; Pods of all other images are simulated.
    pub programs: Vec<Program>,
    /// The pod network at the start.
    pub network: PodNetwork,
    /// Whether Service addresses work.
    pub services: ServiceVip,
    /// Whether the cluster has DNS.
    pub dns: Dns,
    /// Names that the resolvers of the machines know; cluster DNS knows them as well.
    pub names: BTreeMap<String, IpAddr>,
    /// The speed of the simulation.
    pub pace: Pace,
    /// The folder for the files of Pods; `None` for a separate folder in the system's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl ClusterSpec {
    /// A cluster of these machines with all controllers, a pod network that needs no setup, working Service
    /// addresses and no DNS.
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

    /// An API server alone, without machines and controllers: objects stay as they are written, as with
    /// envtest. A deleted namespace stays `Terminating`, because no controller empties it.
    #[must_use]
    pub fn api_server() -> ClusterSpec {
        ClusterSpec { controllers: BTreeSet::new(), ..ClusterSpec::new(Vec::new()) }
    }

    /// A cluster with this many machines, named `node-0` and so on, and ready for Pods: the first is a control
    /// plane, the others are workers.
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
