//! The Pods that a kubeadm cluster runs before anything is installed: static Pods of control planes, kube-proxy, and kind's
//! network plugin. Pods of the manifests may require to be near them or apart from them, or want their ports.

use super::build::Model;
use bootstrap_manifests::cluster::{Cni, KubeProxy};
use bootstrap_manifests::workload::{Labels, PodTerm, Workload};

/// A Pod of the cluster.
pub(super) struct StaticPod {
    pub(super) name: &'static str,
    labels: &'static [(&'static str, &'static str)],
    /// The port that it declares, since Kubernetes 1.34 (kubeadm, `probe-port`).
    port: Option<i64>,
    control_planes_only: bool,
}

impl StaticPod {
    pub(super) fn labels(&self) -> Labels {
        self.labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }
}

const ALL: &[StaticPod] = &[
    StaticPod {
        name: "kube-apiserver",
        labels: &[("component", "kube-apiserver"), ("tier", "control-plane")],
        port: Some(6443),
        control_planes_only: true,
    },
    StaticPod {
        name: "kube-controller-manager",
        labels: &[("component", "kube-controller-manager"), ("tier", "control-plane")],
        port: Some(10_257),
        control_planes_only: true,
    },
    StaticPod {
        name: "kube-scheduler",
        labels: &[("component", "kube-scheduler"), ("tier", "control-plane")],
        port: Some(10_259),
        control_planes_only: true,
    },
    StaticPod {
        name: "etcd",
        labels: &[("component", "etcd"), ("tier", "control-plane")],
        port: Some(2381),
        control_planes_only: true,
    },
    StaticPod {
        name: "kube-proxy",
        labels: &[("k8s-app", "kube-proxy")],
        port: None,
        control_planes_only: false,
    },
    StaticPod {
        name: "kindnet",
        labels: &[("app", "kindnet"), ("k8s-app", "kindnet"), ("tier", "node")],
        port: None,
        control_planes_only: false,
    },
];

/// The minor version since which the static Pods of kubeadm declare their ports.
const PORTS_SINCE: u32 = 34;

impl Model<'_> {
    /// The Pods of the cluster on a Node.
    pub(super) fn present(&self, node: usize) -> impl Iterator<Item = &'static StaticPod> {
        let (proxy, kindnet) = (
            self.cluster.kube_proxy == KubeProxy::Yes,
            self.cluster.cni == Cni::Kindnet && !self.set.brings_cni(),
        );
        let control_plane = self.machines[node].control_plane;
        ALL.iter().filter(move |pod| match pod.name {
            "kube-proxy" => proxy,
            "kindnet" => kindnet,
            _ => control_plane || !pod.control_planes_only,
        })
    }

    /// The Pod of the cluster that is meant by a term and is in the same place as the Node.
    pub(super) fn static_pod(
        &self,
        workload: &Workload,
        node: usize,
        term: &PodTerm,
    ) -> Option<&'static StaticPod> {
        let place = |node: usize| self.machines[node].labels.get(&term.topology_key);
        let own = place(node)?;
        (0..self.machines.len()).filter(|other| place(*other) == Some(own)).find_map(|other| {
            self.present(other).find(|pod| term.means(&workload.namespace, "kube-system", &pod.labels()))
        })
    }

    /// The port of the workload that a Pod of the cluster already has on the Node, and the name of that Pod.
    pub(super) fn static_port(&self, workload: &Workload, node: usize) -> Option<(usize, &'static str)> {
        if self.cluster.version.minor < PORTS_SINCE {
            return None;
        }
        workload.host_ports.iter().enumerate().find_map(|(at, (port, protocol, _))| {
            let taken = self.present(node).find(|pod| pod.port == Some(*port) && protocol == "TCP");
            taken.map(|pod| (at, pod.name))
        })
    }
}
