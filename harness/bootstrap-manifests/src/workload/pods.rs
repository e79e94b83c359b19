//! A workload: the parts of its Pod template that decide whether Pods are created, scheduled, started and can work.

use super::container::Container;
use super::hindrance::Hindrance;
use super::kind::{DnsPolicy, Role, WorkloadKind};
use super::outside::Condition;
use super::placement::PodTerm;
use super::refs::Ref;
use super::selector::{Labels, Term};
use super::spread::Spread;
use super::taint::{Effect, NETWORK_UNAVAILABLE, NOT_READY, Taint, Toleration, UNREACHABLE, borne};
use crate::manifest::Place;

/// A workload, with the places of its parts.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its role in the boot.
    pub role: Role,
    /// The index of its object in the set; `None` for workloads that Kubernetes itself brings.
    pub object: Option<usize>,
    /// Where the object begins.
    pub place: Place,
    /// The place where the Pod's specification begins.
    pub spec_place: Place,
    /// How many Pods it has; 1 for a DaemonSet, which has one on each Node.
    pub replicas: u32,
    /// Where `replicas` is.
    pub replicas_place: Place,
    /// Whether a rollout starts new Pods before the old ones are gone.
    pub surges: bool,
    /// Labels of its Pods.
    pub labels: Labels,
    /// The taints that its Pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// Where `tolerations` is.
    pub tolerations_place: Place,
    /// The labels that a Node needs: key, value, place.
    pub node_selector: Vec<(String, String, Place)>,
    /// Required node affinity: alternatives; `None` when nothing is required.
    pub node_affinity: Option<Vec<Term>>,
    /// Preferred Nodes: terms with their weights.
    pub preferred_nodes: Vec<(i64, Term)>,
    /// Where `affinity` is.
    pub affinity_place: Place,
    /// Required Pod affinity.
    pub near: Vec<PodTerm>,
    /// Required Pod anti-affinity.
    pub apart: Vec<PodTerm>,
    /// Preferred Pod anti-affinity.
    pub rather_apart: Vec<PodTerm>,
    /// Whether its Pods use the network of the machine.
    pub host_network: bool,
    /// Where `hostNetwork` is.
    pub host_network_place: Place,
    /// How its Pods find their name servers.
    pub dns: DnsPolicy,
    /// Where `dnsPolicy` is.
    pub dns_place: Place,
    /// The service account of its Pods.
    pub service_account: String,
    /// Where `serviceAccountName` is.
    pub service_account_place: Place,
    /// The priority class and its place, if one is named.
    pub priority_class: Option<(String, Place)>,
    /// The scheduler's priority, once the class is known.
    pub priority: i64,
    /// Ports of the host that the scheduler takes into account: number, protocol, place.
    pub host_ports: Vec<(i64, String, Place)>,
    /// Its containers, with init containers.
    pub containers: Vec<Container>,
    /// Objects that must exist.
    pub refs: Vec<Ref>,
    /// Environment variables read from `status.hostIP` or `status.hostIPs`.
    pub host_ip: Vec<Place>,
    /// Environment variables read from `status.podIP`.
    pub pod_ip: Vec<Place>,
    /// Volumes that need the storage system: CSI volumes and PersistentVolumeClaims.
    pub storage: Vec<Place>,
    /// Whether it mounts the folders of the network plugin.
    pub mounts_cni: bool,
    /// Files of its machine that it mounts and that only control planes have.
    pub files_of_control_planes: Vec<(String, Place)>,
    /// Node it is bound to by `nodeName`.
    pub node_name: Option<(String, Place)>,
    /// Hard topology spread constraints.
    pub spread: Vec<Spread>,
    /// The scheduler of its Pods, if it is not Kubernetes' own.
    pub scheduler: Option<(String, Place)>,
    /// Whether its Pods may preempt Pods of lower priority.
    pub preempts: bool,
    /// Settings that keep its Pods from running on any Node.
    pub hindrances: Vec<Hindrance>,
    /// Conditions outside of the manifests.
    pub conditions: Vec<Condition>,
    /// Why the API server refuses it: place, message, remedy.
    pub refused: Vec<(Place, String, String)>,
}

impl Workload {
    /// `Deployment/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// `Deployment/name (file:line)`, without the place for workloads that Kubernetes itself brings.
    pub fn title_with_place(&self) -> String {
        match self.object {
            Some(_) => format!("{} ({})", self.title(), self.place),
            None => self.title(),
        }
    }

    /// All tolerations of its Pods: those of the template, those that the DaemonSet controller adds
    /// (`AddOrUpdateDaemonPodTolerations`), and the 300 s that admission adds (`DefaultTolerationSeconds`).
    pub fn effective_tolerations(&self) -> Vec<Toleration> {
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
    pub fn bears_for(&self, key: &str) -> Option<i64> {
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
    pub fn flag(&self, name: &str) -> Option<(String, Place)> {
        self.containers.iter().filter(|container| !container.init).find_map(|container| container.flag(name))
    }

    /// The first container of the list `containers` that has a flag, and its position there.
    pub fn container_with(&self, flag: &str) -> Option<(usize, &Container)> {
        let mut all = self.containers.iter().filter_map(|container| Some((container.position?, container)));
        all.find(|(_, container)| container.flag(flag).is_some())
    }

    /// The container that runs a program of the framework, and its position in the list `containers`.
    pub fn program(&self) -> Option<(usize, &Container)> {
        self.container_with("cloud-provider").or_else(|| self.container_with("leader-elect"))
    }

    /// Whether the manifest contains a command line.
    pub fn has_arguments(&self) -> bool {
        self.containers.iter().any(|container| !container.init && !container.arguments.is_empty())
    }

    /// The labels of its Pods without those that its controller adds.
    pub fn written_labels(&self) -> impl Iterator<Item = (&String, &String)> {
        let added = ["pod-template-hash", "controller-revision-hash"];
        self.labels.iter().filter(move |(key, _)| !added.contains(&key.as_str()))
    }

    /// Whether names are resolved by cluster DNS.
    pub fn needs_cluster_dns(&self) -> bool {
        match self.dns {
            DnsPolicy::ClusterFirst => !self.host_network,
            DnsPolicy::ClusterFirstWithHostNet => true,
            DnsPolicy::Default | DnsPolicy::None => false,
        }
    }
}
