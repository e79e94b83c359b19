//! A workload: the parts of its Pod template that decide whether Pods are created, scheduled, started and can work.

use super::container::Container;
use super::hindrance::Hindrance;
use super::kind::{DnsPolicy, Role, WorkloadKind};
use super::outside::Condition;
use super::placement::PodTerm;
use super::refs::Ref;
use super::selector::{Labels, Term};
use super::taint::{Effect, NETWORK_UNAVAILABLE, NOT_READY, Taint, Toleration, UNREACHABLE, borne};
use crate::manifest::Place;

/// A workload, with the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) kind: WorkloadKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Its role in the boot.
    pub(crate) role: Role,
    /// The index of its object in the set; `None` for workloads that Kubernetes itself brings.
    pub(crate) object: Option<usize>,
    pub(crate) place: Place,
    /// The place where the Pod's specification begins.
    pub(crate) spec_place: Place,
    pub(crate) replicas: u32,
    pub(crate) replicas_place: Place,
    /// Whether a rollout starts new Pods before the old ones are gone.
    pub(crate) surges: bool,
    /// Labels of its Pods.
    pub(crate) labels: Labels,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) tolerations_place: Place,
    pub(crate) node_selector: Vec<(String, String, Place)>,
    /// Required node affinity: alternatives; `None` when nothing is required.
    pub(crate) node_affinity: Option<Vec<Term>>,
    pub(crate) affinity_place: Place,
    /// Required Pod affinity.
    pub(crate) near: Vec<PodTerm>,
    /// Required Pod anti-affinity.
    pub(crate) apart: Vec<PodTerm>,
    /// Preferred Pod anti-affinity.
    pub(crate) rather_apart: Vec<PodTerm>,
    pub(crate) host_network: bool,
    pub(crate) host_network_place: Place,
    pub(crate) dns: DnsPolicy,
    pub(crate) dns_place: Place,
    pub(crate) service_account: String,
    pub(crate) service_account_place: Place,
    pub(crate) priority_class: Option<(String, Place)>,
    /// The scheduler's priority, once the class is known.
    pub(crate) priority: i64,
    /// Ports of the host that the scheduler takes into account: number, protocol, place.
    pub(crate) host_ports: Vec<(i64, String, Place)>,
    pub(crate) containers: Vec<Container>,
    /// Objects that must exist.
    pub(crate) refs: Vec<Ref>,
    /// Environment variables read from `status.hostIP` or `status.hostIPs`.
    pub(crate) host_ip: Vec<Place>,
    /// Environment variables read from `status.podIP`.
    pub(crate) pod_ip: Vec<Place>,
    /// Volumes that need the storage system: CSI volumes and PersistentVolumeClaims.
    pub(crate) storage: Vec<Place>,
    /// Whether it mounts the folders of the network plugin.
    pub(crate) mounts_cni: bool,
    /// Node it is bound to by `nodeName`.
    pub(crate) node_name: Option<(String, Place)>,
    /// Labels that a Node needs for a hard topology spread constraint.
    pub(crate) spread: Vec<(String, Place)>,
    /// The scheduler of its Pods, if it is not Kubernetes' own.
    pub(crate) scheduler: Option<(String, Place)>,
    /// Whether its Pods may preempt Pods of lower priority.
    pub(crate) preempts: bool,
    /// Settings that keep its Pods from running on any Node.
    pub(crate) hindrances: Vec<Hindrance>,
    /// Conditions outside of the manifests.
    pub(crate) conditions: Vec<Condition>,
    /// Why the API server refuses it: place, message, remedy.
    pub(crate) refused: Vec<(Place, String, String)>,
}

impl Workload {
    /// `Deployment/name`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// `Deployment/name (file:line)`, without the place for workloads that Kubernetes itself brings.
    pub(crate) fn title_with_place(&self) -> String {
        match self.object {
            Some(_) => format!("{} ({})", self.title(), self.place),
            None => self.title(),
        }
    }

    /// All tolerations of its Pods: those of the template, those that the DaemonSet controller adds
    /// (`AddOrUpdateDaemonPodTolerations`), and the 300 s that admission adds (`DefaultTolerationSeconds`).
    pub(crate) fn effective_tolerations(&self) -> Vec<Toleration> {
        let mut all = self.tolerations.clone();
        if self.kind == WorkloadKind::DaemonSet {
            for key in [NOT_READY, UNREACHABLE] {
                all.push(Toleration::of(key, Some(Effect::NoExecute), None));
            }
            for key in ["disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"] {
                let key = format!("node.kubernetes.io/{key}");
                all.push(Toleration::of(&key, Some(Effect::NoSchedule), None));
            }
            if self.host_network {
                all.push(Toleration::of(NETWORK_UNAVAILABLE, Some(Effect::NoSchedule), None));
            }
        }
        for key in [NOT_READY, UNREACHABLE] {
            let taint = Taint::new(key, "", Effect::NoExecute);
            if !borne(&all, &taint) {
                all.push(Toleration::of(key, Some(Effect::NoExecute), Some(300)));
            }
        }
        all
    }

    /// How long its Pods stay on a Node with the NoExecute form of a taint, in seconds; `None` for ever, 0 not at all.
    pub(crate) fn bears_for(&self, key: &str) -> Option<i64> {
        let taint = Taint::new(key, "", Effect::NoExecute);
        let bearing: Vec<Toleration> =
            self.effective_tolerations().into_iter().filter(|toleration| toleration.bears(&taint)).collect();
        if bearing.is_empty() {
            return Some(0);
        }
        // The taint manager uses the shortest of those that match (`getMinTolerationTime`).
        bearing.iter().filter_map(|toleration| toleration.seconds).map(|seconds| seconds.max(0)).min()
    }

    /// The value of a flag over all containers but the init ones: `--name=value` or `--name value`.
    pub(crate) fn flag(&self, name: &str) -> Option<(String, Place)> {
        self.containers.iter().filter(|container| !container.init).find_map(|container| container.flag(name))
    }

    /// Whether the manifest contains a command line.
    pub(crate) fn has_arguments(&self) -> bool {
        self.containers.iter().any(|container| !container.init && !container.arguments.is_empty())
    }

    /// Whether names are resolved by cluster DNS.
    pub(crate) fn needs_cluster_dns(&self) -> bool {
        match self.dns {
            DnsPolicy::ClusterFirst => !self.host_network,
            DnsPolicy::ClusterFirstWithHostNet => true,
            DnsPolicy::Default | DnsPolicy::None => false,
        }
    }
}
