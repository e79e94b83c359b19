//! The properties of a synthetic Node to be created (contract ENV-07).

use harness_clouds::{Address, Instance, InstanceIds};
use harness_session::k8s::{L_EXCL, T_UNINIT};
use k8s_openapi::api::core::v1::{
    self as core, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

/// A Node's initial Ready condition.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(node: &Node<'_>) -> Verdict {
/// node.set_ready(Ready::Unknown).await?;
/// node.keeps(present()).when("while its kubelet does not report").await
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// `True`, and kept so by renewing its heartbeat Lease.
    True,
    /// `False`.
    False,
    /// `Unknown`: set by the node lifecycle controller for a Node whose kubelet does not report.
    Unknown,
    /// No such condition, as before a kubelet's first report.
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
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(machine: &Machine<'_>, cx: &CheckCx) -> Verdict {
/// let plan: NodePlan = machine.node().label("acme.example/rack", "r7").ready(Ready::False);
/// let node = cx.node(plan).await?;
/// node.becomes(initialised()).when("though it is not Ready").await?;
/// # Ok(()) }
/// ```
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
    /// Its addresses besides the host name.
    addresses: Vec<NodeAddress>,
    /// Whether it has room for Pods.
    room: bool,
    /// What its kubelet reads from the machine's firmware.
    system_uuid: String,
    /// Its machine's names in the cloud.
    pub(super) machine: Vec<String>,
}

/// The annotation that every kubelet sets when it registers its Node: some CCMs crash on a Node without annotations.
const KUBELETS_OWN: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// A taint.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, machine: &Machine<'_>) -> Verdict {
/// let kept = taint("example.com/kept", "1", "NoSchedule");
/// let node = cx.node(machine.node().taints(vec![kept, uninitialized()])).await?;
/// let seen = node.becomes(initialised()).await?;
/// cx.record("taints", taints(&seen).join(", "));
/// # Ok(()) }
/// ```
pub fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: Some(value.to_owned()).filter(|v| !v.is_empty()),
        effect: effect.to_owned(),
        time_added: None,
    }
}

/// The taint that a kubelet with an external cloud provider sets on registration.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, machine: &Machine<'_>) -> Verdict {
/// let plan = machine.node().taints(vec![uninitialized(), taint(T_NOT_READY, "", "NoSchedule")]);
/// let node = cx.node(plan).await?;
/// node.becomes(initialised()).await?;
/// # Ok(()) }
/// ```
pub fn uninitialized() -> Taint {
    taint(T_UNINIT, "true", "NoSchedule")
}

impl NodePlan {
    /// An uninitialised, Ready Node of a machine, with its host name, as a kubelet would register it. It is excluded from
    /// load balancers, as a backend whose machine is gone from the cloud would block the load balancers of all other
    /// checks (see [`NodePlan::backend`]).
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

    /// The Node of a machine as a CCM initialises it: without the taint, with that providerID and the machine's
    /// addresses. Some CCMs find the target of a route by a Node's addresses.
    pub(super) fn initialised(instance: &Instance, ids: InstanceIds, provider_id: String) -> NodePlan {
        let address = |a: &Address| NodeAddress { type_: a.kind.clone(), address: a.address.clone() };
        NodePlan {
            taints: Vec::new(),
            provider_id: Some(provider_id),
            addresses: instance.addresses.iter().map(address).collect(),
            ..NodePlan::of(instance, ids)
        }
    }

    /// Uses another name than its machine's.
    pub fn named(mut self, name: &str) -> NodePlan {
        self.labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        self.name = name.to_owned();
        self
    }

    /// Uses exactly these taints.
    pub fn taints(mut self, taints: Vec<Taint>) -> NodePlan {
        self.taints = taints;
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> NodePlan {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Allows load balancers to use it.
    pub fn backend(mut self) -> NodePlan {
        self.labels.remove(L_EXCL);
        self
    }

    /// Adds an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> NodePlan {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets a providerID.
    pub fn provider_id(mut self, id: &str) -> NodePlan {
        self.provider_id = Some(id.to_owned());
        self
    }

    /// Sets this Ready condition.
    pub fn ready(mut self, ready: Ready) -> NodePlan {
        self.ready = ready;
        self
    }

    /// Uses these pod networks instead of those that the cluster would assign.
    pub fn pod_cidrs(mut self, cidrs: &[&str]) -> NodePlan {
        self.pod_cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
        self
    }

    /// Adds a condition as another component would write it.
    pub fn condition(mut self, type_: &str, status: &str, reason: &str) -> NodePlan {
        self.conditions.push(condition(type_, status, reason));
        self
    }

    /// Cordons it.
    pub fn unschedulable(mut self) -> NodePlan {
        self.unschedulable = true;
        self
    }

    /// Gives it room for Pods, which synthetic Nodes do not have by default: the scheduler may place some on it.
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
