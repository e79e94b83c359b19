//! What a synthetic Node is to be when it is created (contract ENV-07).

use harness_clouds::{Address, Instance, InstanceIds};
use harness_session::k8s::{L_EXCL, T_UNINIT};
use k8s_openapi::api::core::v1::{
    self as core, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

/// What a Node's Ready condition says at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// `True`, and kept so by renewing its heartbeat Lease.
    True,
    /// `False`.
    False,
    /// `Unknown`: what the node lifecycle controller makes of a Node whose kubelet is silent.
    Unknown,
    /// No such condition: what a kubelet has before its first report.
    Absent,
}

impl Ready {
    pub(super) fn condition(self) -> Option<NodeCondition> {
        let status = match self {
            Ready::True => "True",
            Ready::False => "False",
            Ready::Unknown => "Unknown",
            Ready::Absent => return None,
        };
        Some(condition("Ready", status, "Synthetic"))
    }
}

/// A condition of a Node.
pub(super) fn condition(type_: &str, status: &str, reason: &str) -> NodeCondition {
    let now = Some(Time(Timestamp::now()));
    NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some("set by the conformance harness".to_owned()),
        last_heartbeat_time: now.clone(),
        last_transition_time: now,
    }
}

/// A synthetic Node to be created.
#[derive(Clone, Debug)]
pub struct NodePlan {
    name: String,
    taints: Vec<Taint>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    provider_id: Option<String>,
    pub(super) ready: Ready,
    unschedulable: bool,
    pod_cidrs: Vec<String>,
    conditions: Vec<NodeCondition>,
    /// Beside its host name.
    addresses: Vec<NodeAddress>,
    /// Whether Pods have room on it.
    room: bool,
    /// What its kubelet reads from the machine's firmware.
    system_uuid: String,
    /// Names the cloud has for its machine.
    pub(super) machine: Vec<String>,
}

/// The annotation that every kubelet registers its Node with: there are CCMs that end where a Node has none at all.
const KUBELETS_OWN: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// A taint.
pub fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: Some(value.to_owned()).filter(|v| !v.is_empty()),
        effect: effect.to_owned(),
        time_added: None,
    }
}

/// The taint a kubelet with an external cloud provider registers with.
pub fn uninitialized() -> Taint {
    taint(T_UNINIT, "true", "NoSchedule")
}

impl NodePlan {
    /// An uninitialised, Ready Node of a machine, with its host name, as a kubelet would register it. It is excluded
    /// from load balancers: one whose machine is gone from the cloud would stop those of all other checks (see
    /// [`NodePlan::backend`]).
    pub(super) fn of(instance: &Instance, ids: InstanceIds) -> NodePlan {
        let Instance { id, name, provider_id, .. } = instance;
        let machine = [id, name].into_iter().chain(provider_id).cloned().collect();
        NodePlan {
            name: name.clone(),
            taints: vec![uninitialized()],
            labels: BTreeMap::from([
                ("kubernetes.io/hostname".to_owned(), name.to_owned()),
                (L_EXCL.to_owned(), String::new()),
            ]),
            annotations: BTreeMap::from([(KUBELETS_OWN.to_owned(), "true".to_owned())]),
            provider_id: None,
            ready: Ready::True,
            unschedulable: false,
            pod_cidrs: Vec::new(),
            conditions: Vec::new(),
            addresses: Vec::new(),
            room: false,
            system_uuid: ids.system_uuid(id),
            machine,
        }
    }

    /// The Node of a machine as a CCM leaves it: without the taint, with that providerID and the machine's addresses. There
    /// are CCMs that tell by a Node's addresses where a route leads.
    pub(super) fn initialised(instance: &Instance, ids: InstanceIds, provider_id: String) -> NodePlan {
        let address = |a: &Address| NodeAddress { type_: a.kind.clone(), address: a.address.clone() };
        NodePlan {
            taints: Vec::new(),
            provider_id: Some(provider_id),
            addresses: instance.addresses.iter().map(address).collect(),
            ..NodePlan::of(instance, ids)
        }
    }

    /// With another name than its machine's.
    pub fn named(mut self, name: &str) -> NodePlan {
        self.labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        self.name = name.to_owned();
        self
    }

    /// With exactly these taints.
    pub fn taints(mut self, taints: Vec<Taint>) -> NodePlan {
        self.taints = taints;
        self
    }

    /// With a label.
    pub fn label(mut self, key: &str, value: &str) -> NodePlan {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// One that load balancers may use.
    pub fn backend(mut self) -> NodePlan {
        self.labels.remove(L_EXCL);
        self
    }

    /// With an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> NodePlan {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With a providerID.
    pub fn provider_id(mut self, id: &str) -> NodePlan {
        self.provider_id = Some(id.to_owned());
        self
    }

    /// With this Ready condition.
    pub fn ready(mut self, ready: Ready) -> NodePlan {
        self.ready = ready;
        self
    }

    /// With these pod networks, in place of whatever the cluster would give it.
    pub fn pod_cidrs(mut self, cidrs: &[&str]) -> NodePlan {
        self.pod_cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
        self
    }

    /// With a condition as somebody else has written it.
    pub fn condition(mut self, type_: &str, status: &str, reason: &str) -> NodePlan {
        self.conditions.push(condition(type_, status, reason));
        self
    }

    /// Cordoned.
    pub fn unschedulable(mut self) -> NodePlan {
        self.unschedulable = true;
        self
    }

    /// With room for Pods, which none of them has otherwise: the scheduler may place some on it.
    pub fn with_room(mut self) -> NodePlan {
        self.room = true;
        self
    }

    pub(super) fn into_node(self) -> core::Node {
        let room = [("cpu", "4"), ("memory", "4Gi"), ("pods", "10")];
        let room = room.map(|(what, much)| (what.to_owned(), Quantity(much.to_owned())));
        let room = self.room.then(|| BTreeMap::from(room));
        let conditions: Vec<_> = self.ready.condition().into_iter().chain(self.conditions).collect();
        let host_name = NodeAddress { type_: "Hostname".to_owned(), address: self.name.clone() };
        let mut addresses = self.addresses;
        if !addresses.contains(&host_name) {
            addresses.push(host_name);
        }
        core::Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels),
                annotations: Some(self.annotations),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                provider_id: self.provider_id,
                taints: Some(self.taints),
                unschedulable: self.unschedulable.then_some(true),
                pod_cidr: self.pod_cidrs.first().cloned(),
                pod_cidrs: (!self.pod_cidrs.is_empty()).then_some(self.pod_cidrs),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                addresses: Some(addresses),
                conditions: (!conditions.is_empty()).then_some(conditions),
                capacity: room.clone(),
                allocatable: room,
                node_info: Some(NodeSystemInfo {
                    system_uuid: self.system_uuid,
                    ..NodeSystemInfo::default()
                }),
                ..NodeStatus::default()
            }),
        }
    }
}
