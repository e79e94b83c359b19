//! The machines of an embedded cluster, as kubeadm, kind and kubelets make them.

use super::{REGISTRATION_LIMIT, network};
use crate::check::chain;
use crate::cluster::registration::PlannedTaint;
use crate::cluster::spec::ClusterSpec;
use crate::cluster::topology::{Layout, PlannedMachine};
use crate::cluster::{Families, Machine, Role};
use crate::config::NodeIp;
use crate::probe::{ReadError, poll};
use embedded_controllers::{CloudProvider, NodeSpec, NodeTaint};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Label and taint of control-plane Nodes.
const L_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Their older label, until 1.23, and taint, until 1.24.
const L_MASTER: &str = "node-role.kubernetes.io/master";
/// What kubeadm gives control-plane Nodes and kind takes from the only Node of a cluster.
const L_EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// One machine of an embedded cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedMachine {
    /// Name of machine and Node.
    pub name: String,
    /// What it does in the cluster.
    pub role: Role,
    /// Whether its kubelet announces its address (`--node-ip`).
    pub node_ip: NodeIp,
    /// What its kubelet writes into `spec.providerID`.
    pub provider_id: Option<String>,
    /// Taints its kubelet registers with besides the cloud's and, on control planes, kubeadm's.
    pub taints: Vec<NodeTaint>,
    /// Whether a control plane keeps the taint that kubeadm gives it; those of a single machine do not.
    pub kubeadm_taint: bool,
    /// Labels its Node has besides the usual ones.
    pub labels: BTreeMap<String, String>,
    /// Who initialises its Node.
    pub cloud: CloudProvider,
}

impl EmbeddedMachine {
    /// A machine that waits for a cloud controller manager, without `--node-ip`.
    pub fn new(name: impl Into<String>, role: Role) -> EmbeddedMachine {
        EmbeddedMachine {
            name: name.into(),
            role,
            node_ip: NodeIp::Dropped,
            provider_id: None,
            taints: Vec::new(),
            kubeadm_taint: false,
            labels: BTreeMap::new(),
            cloud: CloudProvider::External,
        }
    }
}

impl EmbeddedMachine {
    pub(super) fn record(&self, families: Families, index: u32) -> Machine {
        Machine {
            name: self.name.clone(),
            role: self.role,
            ipv4: Some(network::ipv4(index)),
            ipv6: network::ipv6(families, index),
            container_id: String::new(),
        }
    }
}

fn node_taint(taint: &PlannedTaint) -> NodeTaint {
    let PlannedTaint { key, value, effect } = taint.clone();
    NodeTaint { key, value, effect }
}

/// The machines of a run, named as kind names its own.
pub(super) fn machines_of(spec: &ClusterSpec, layout: &Layout) -> Vec<EmbeddedMachine> {
    let (mut control_planes, mut workers) = (0, 0);
    let mut machines: Vec<EmbeddedMachine> = layout
        .machines
        .iter()
        .map(|PlannedMachine { role, registration }| {
            let count = if *role == Role::ControlPlane { &mut control_planes } else { &mut workers };
            *count += 1;
            let number = if *count == 1 { String::new() } else { count.to_string() };
            let name = format!("{}-{role}{number}", spec.run.name());
            let provider_id = spec.provider_ids.of(&name);
            EmbeddedMachine {
                node_ip: spec.own().node_ip,
                provider_id,
                kubeadm_taint: registration.kubeadms_taint,
                taints: registration.taints.iter().map(node_taint).collect(),
                labels: registration.labels.clone(),
                ..EmbeddedMachine::new(name, *role)
            }
        })
        .collect();
    machines.sort_by_key(|machine| machine.role != Role::ControlPlane);
    machines
}

/// As kubelets with an external cloud provider run: the addresses are announced or left to the cloud.
pub(super) fn machines(wanted: &[EmbeddedMachine], families: Families, minor: u32) -> Vec<NodeSpec> {
    let first = network::first_loopback();
    let spec = |(index, machine): (u32, &EmbeddedMachine)| {
        let mut spec = NodeSpec::new(machine.name.clone());
        if machine.node_ip == NodeIp::Kept {
            let ipv6 = network::ipv6(families, index).map(IpAddr::from);
            spec.node_ips = [IpAddr::from(network::ipv4(index))].into_iter().chain(ipv6).collect();
        }
        spec.provider_id.clone_from(&machine.provider_id);
        spec.loopback = Some(Ipv4Addr::from_bits(first + index));
        spec.cloud = machine.cloud;
        spec.taints.clone_from(&machine.taints);
        if machine.role == Role::ControlPlane && machine.kubeadm_taint {
            // kubeadm: the old taint until 1.23, both in 1.24, the new one from 1.25 on (`cmd/kubeadm/app/constants`).
            let old = (minor < 25).then_some(L_MASTER);
            let new = (minor >= 24).then_some(L_CONTROL_PLANE);
            let taint = |key: &str| NodeTaint {
                key: key.to_owned(),
                value: String::new(),
                effect: "NoSchedule".to_owned(),
            };
            spec.taints.extend([old, new].into_iter().flatten().map(taint));
        }
        spec
    };
    (0_u32..).zip(wanted).map(spec).collect()
}

/// Gives Nodes the labels that others than their kubelets write: those asked for, and those of control planes, as kubeadm
/// does once they have registered. The only Node of a cluster stays open to load balancers, as with kind.
pub(super) async fn mark(
    client: &kube::Client,
    machines: &[EmbeddedMachine],
    minor: u32,
) -> Result<(), ReadError> {
    let nodes: Api<Node> = Api::all(client.clone());
    for machine in machines {
        let mut labels = machine.labels.clone();
        if machine.role == Role::ControlPlane {
            let own = [
                Some(L_CONTROL_PLANE),
                (minor < 24).then_some(L_MASTER),
                (machines.len() > 1).then_some(L_EXCLUDED),
            ];
            labels.extend(own.into_iter().flatten().map(|key| (key.to_owned(), String::new())));
        }
        if labels.is_empty() {
            continue;
        }
        let patch = json!({"metadata": {"labels": labels}});
        let marked = async |seen: &mut String| match nodes
            .patch(&machine.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => Ok(Some(())),
            Err(error) => {
                *seen = chain(&error);
                Ok(None)
            }
        };
        let what = format!("the Node {} registers", machine.name);
        poll(&what, REGISTRATION_LIMIT, Duration::from_millis(10), marked).await?;
    }
    Ok(())
}
