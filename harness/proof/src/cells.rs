//! The cluster of a cell as an embedded cluster. Pure functions.

use super::question::Question;
use bootstrap::{Cluster, Cni, Topology, YesNo};
use embedded_cluster::{KubernetesVersion, MachineSpec, NodeIp, NodeTaint, Pace, PodNetwork, Role};
use std::time::Duration;

/// Why an embedded cluster cannot show this cell, if it cannot.
pub(super) fn hidden(question: &Question) -> Option<String> {
    if let Some(why) = question.case.not_observable_on.get("embedded") {
        return Some(why.clone());
    }
    (question.cell.cluster.cni == Cni::Kindnet)
        .then(|| "kindnet is a program of kind, and the embedded cluster only has its own network".to_owned())
}

/// A fast cluster: restarts do not wait longer than a look takes.
pub(super) fn pace() -> Pace {
    Pace { restart_first: Duration::from_secs(1), restart_longest: Duration::from_secs(5), ..Pace::default() }
}

pub(super) fn version(cell: &Cluster) -> Result<KubernetesVersion, String> {
    let newest = KubernetesVersion::default();
    if newest.to_string().starts_with(&format!("v{}.", cell.version)) {
        return Ok(newest);
    }
    let version = cell.version.to_string().parse();
    version.map_err(|error: embedded_cluster::UnknownVersion| error.to_string())
}

pub(super) fn network(cell: &Cluster) -> PodNetwork {
    let startup = |waits_for_addresses| PodNetwork::StartupTaint {
        key: cell.startup_taint.key.clone(),
        waits_for_addresses,
    };
    match cell.cni {
        Cni::None => PodNetwork::None,
        Cni::Independent => PodNetwork::Independent,
        Cni::WaitsForAddresses | Cni::Kindnet => PodNetwork::WaitsForAddresses,
        Cni::StartupTaint => startup(false),
        Cni::StartupTaintAndWaits => startup(true),
    }
}

/// The machines of a topology, as kubeadm and kubelets set them up.
pub(super) fn machines(cell: &Cluster) -> Vec<MachineSpec> {
    let (control_planes, workers) = match cell.topology {
        Topology::SingleNode | Topology::SingleControlPlane => (1, 0),
        Topology::ControlPlaneAndWorker => (1, 1),
        Topology::ThreeControlPlanes => (3, 0),
        Topology::Hosted | Topology::WorkerOnly => (0, 2),
    };
    let taint = |taint: &bootstrap::Taint| NodeTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.to_string(),
    };
    let startup = matches!(cell.cni, Cni::StartupTaint | Cni::StartupTaintAndWaits);
    let startup = startup.then(|| taint(&cell.startup_taint));
    let machine = |role: Role, number: u32| {
        let name = if role == Role::ControlPlane { "control-plane" } else { "worker" };
        let own = cell.control_plane_taints.as_ref().filter(|_| role == Role::ControlPlane);
        let mut taints: Vec<NodeTaint> = own.into_iter().flatten().map(taint).collect();
        taints.extend(startup.clone());
        MachineSpec {
            node_ip: if cell.node_ip == YesNo::Yes { NodeIp::Announced } else { NodeIp::Unset },
            taints,
            kubeadm_taint: role == Role::ControlPlane
                && own.is_none()
                && cell.topology != Topology::SingleNode,
            ..MachineSpec::awaiting_cloud(format!("{name}-{number}"), role)
        }
    };
    let first = (1..=control_planes).map(|number| machine(Role::ControlPlane, number));
    first.chain((1..=workers).map(|number| machine(Role::Worker, number))).collect()
}

/// Whether the machine has no taints after the boot.
pub(super) fn is_open(machine: &MachineSpec, cell: &Cluster) -> bool {
    !machine.kubeadm_taint && machine.taints.iter().all(|taint| taint.key == cell.startup_taint.key)
}
