//! The machines of a cluster, as kubeadm, kind and kubelets set them up.

use crate::addresses::{self, IpFamilies};
use embedded_controllers::{CloudProvider, NodeSpec, NodeTaint, ServingCertificate};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Label and taint of control-plane Nodes.
const L_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Their older label, until 1.23, and taint, until 1.24.
const L_MASTER: &str = "node-role.kubernetes.io/master";
/// The label that kubeadm sets on control-plane Nodes, and that kind removes from the only Node of a cluster.
const L_EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The role of a machine in the cluster. The API server and the controllers run on none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The Node has the labels of a control plane, and its taint ([`MachineSpec::kubeadm_taint`]).
    ControlPlane,
    /// The Node is an ordinary one.
    Worker,
}

/// Whether a kubelet announces its addresses (`--node-ip`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIp {
    /// The kubelet announces its addresses: see [`Cluster::node_ipv4`](crate::Cluster::node_ipv4).
    Announced,
    /// The kubelet leaves its addresses to the cloud.
    Unset,
}

/// One machine of a cluster and its kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// The name of machine and Node.
    pub name: String,
    /// The role of the machine.
    pub role: Role,
    /// Whether the kubelet announces its addresses.
    pub node_ip: NodeIp,
    /// The `spec.providerID` that the kubelet sets.
    pub provider_id: Option<String>,
    /// The source of the kubelet's serving certificate.
    pub serving: ServingCertificate,
    /// Taints that the kubelet registers with, in addition to the cloud's and, on control planes, kubeadm's.
    pub taints: Vec<NodeTaint>,
    /// Whether a control plane has the taint of kubeadm. The only machine of a cluster does not have it.
    pub kubeadm_taint: bool,
    /// Labels of the Node in addition to the usual ones.
    pub labels: BTreeMap<String, String>,
    /// The component that initialises the Node.
    pub cloud: CloudProvider,
}

impl MachineSpec {
    /// A machine whose Node needs no initialisation: its kubelet announces its addresses and waits for no cloud.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role) -> MachineSpec {
        MachineSpec {
            name: name.into(),
            role,
            node_ip: NodeIp::Announced,
            provider_id: None,
            serving: ServingCertificate::SelfSigned,
            taints: Vec::new(),
            kubeadm_taint: false,
            labels: BTreeMap::new(),
            cloud: CloudProvider::None,
        }
    }

    /// A machine that waits for a cloud controller manager (`--cloud-provider=external`), without `--node-ip`.
    #[must_use]
    pub fn awaiting_cloud(name: impl Into<String>, role: Role) -> MachineSpec {
        MachineSpec { node_ip: NodeIp::Unset, cloud: CloudProvider::External, ..MachineSpec::new(name, role) }
    }

    /// The labels of the Node that the kubelet may not set itself: those of the spec, and those of control
    /// planes, as kubeadm sets them. The only Node of a cluster stays available to load balancers, as in
    /// kind.
    pub(crate) fn labels_of_others(&self, machines: usize, minor: u32) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        if self.role == Role::ControlPlane {
            let own = [
                Some(L_CONTROL_PLANE),
                (minor < 24).then_some(L_MASTER),
                (machines > 1).then_some(L_EXCLUDED),
            ];
            labels.extend(own.into_iter().flatten().map(|key| (key.to_owned(), String::new())));
        }
        labels
    }

    /// The settings of its kubelet.
    fn kubelet(&self, families: IpFamilies, minor: u32, index: u32, loopback: Ipv4Addr) -> NodeSpec {
        let mut spec = NodeSpec::new(self.name.clone());
        if self.node_ip == NodeIp::Announced {
            let ipv6 = addresses::ipv6(families, index).map(IpAddr::from);
            spec.node_ips = [IpAddr::from(addresses::ipv4(index))].into_iter().chain(ipv6).collect();
        }
        spec.provider_id.clone_from(&self.provider_id);
        spec.serving = self.serving;
        spec.loopback = Some(loopback);
        spec.cloud = self.cloud;
        spec.taints.clone_from(&self.taints);
        if self.role == Role::ControlPlane && self.kubeadm_taint {
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
    }
}

/// The settings of all kubelets.
pub(crate) fn kubelets(
    machines: &[MachineSpec],
    families: IpFamilies,
    minor: u32,
    first: Ipv4Addr,
) -> Vec<NodeSpec> {
    let loopback = |index| Ipv4Addr::from_bits(first.to_bits() + index);
    (0..)
        .zip(machines)
        .map(|(index, machine)| machine.kubelet(families, minor, index, loopback(index)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_planes_are_labelled_and_tainted_as_kubeadm_of_their_version_does() {
        let machine =
            MachineSpec { kubeadm_taint: true, ..MachineSpec::awaiting_cloud("a", Role::ControlPlane) };
        let labels =
            |machines, minor| machine.labels_of_others(machines, minor).into_keys().collect::<Vec<_>>();
        assert_eq!(labels(1, 36), [L_CONTROL_PLANE]);
        assert_eq!(labels(2, 23), [L_CONTROL_PLANE, L_MASTER, L_EXCLUDED]);
        let first = Ipv4Addr::new(127, 16, 0, 1);
        let taints = |minor| {
            let kubelet = &kubelets(std::slice::from_ref(&machine), IpFamilies::Ipv4, minor, first)[0];
            kubelet.taints.iter().map(|taint| taint.key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(taints(23), [L_MASTER]);
        assert_eq!(taints(24), [L_MASTER, L_CONTROL_PLANE]);
        assert_eq!(taints(25), [L_CONTROL_PLANE]);
        let worker = MachineSpec { kubeadm_taint: true, ..MachineSpec::new("b", Role::Worker) };
        assert!(worker.labels_of_others(2, 36).is_empty());
        assert!(kubelets(&[worker], IpFamilies::Ipv4, 36, first)[0].taints.is_empty());
    }

    #[test]
    fn addresses_are_announced_or_left_to_the_cloud() {
        let machines = [
            MachineSpec::new("a", Role::Worker),
            MachineSpec::awaiting_cloud("b", Role::Worker),
            MachineSpec::new("c", Role::Worker),
        ];
        let kubelets = kubelets(&machines, IpFamilies::Dual, 36, Ipv4Addr::new(127, 16, 0, 1));
        assert!(kubelets[1].node_ips.is_empty());
        let third = ["10.89.0.3", "fd00:10:89::3"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
        assert_eq!(kubelets[2].node_ips, third);
        assert_ne!(kubelets[0].loopback, kubelets[1].loopback);
    }
}
