//! Synthetic Nodes (contract ENV-07): Node objects without a kubelet, and the instances behind them.

use super::{CheckCx, Undo};
use crate::check::Stop;
use crate::cloud::{Address, Instance, InstanceState};
use crate::k8s::{L_EXCL, T_UNINIT};
use crate::probe::pause;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Namespace of the kubelets' heartbeat Leases.
const HEARTBEATS: &str = "kube-node-lease";

/// What a Node's Ready condition says at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// `True`, and kept so by renewing its heartbeat Lease.
    True,
    /// `False`.
    False,
    /// No such condition: what a kubelet has before its first report.
    Absent,
}

/// A synthetic Node to be created.
#[derive(Clone, Debug)]
pub struct NodePlan {
    name: String,
    taints: Vec<Taint>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    provider_id: Option<String>,
    ready: Ready,
    unschedulable: bool,
}

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
    /// An uninitialised, Ready Node with its host name, as a kubelet would register it. It is excluded from load
    /// balancers: one whose machine is gone from the cloud would stop those of all other checks (see
    /// [`NodePlan::backend`]).
    pub fn new(name: &str) -> NodePlan {
        NodePlan {
            name: name.to_owned(),
            taints: vec![uninitialized()],
            labels: BTreeMap::from([
                ("kubernetes.io/hostname".to_owned(), name.to_owned()),
                (L_EXCL.to_owned(), String::new()),
            ]),
            annotations: BTreeMap::new(),
            provider_id: None,
            ready: Ready::True,
            unschedulable: false,
        }
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

    /// Cordoned.
    pub fn unschedulable(mut self) -> NodePlan {
        self.unschedulable = true;
        self
    }

    fn into_node(self) -> Node {
        let condition = match self.ready {
            Ready::True => Some(ready_condition("True")),
            Ready::False => Some(ready_condition("False")),
            Ready::Absent => None,
        };
        Node {
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
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                addresses: Some(vec![NodeAddress { type_: "Hostname".to_owned(), address: self.name }]),
                conditions: condition.map(|c| vec![c]),
                ..NodeStatus::default()
            }),
        }
    }
}

fn ready_condition(status: &str) -> NodeCondition {
    let now = Some(Time(Timestamp::now()));
    NodeCondition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: Some("Synthetic".to_owned()),
        message: Some("set by the conformance harness".to_owned()),
        last_heartbeat_time: now.clone(),
        last_transition_time: now,
    }
}

/// An address of an instance.
pub fn address(kind: &str, address: &str) -> Address {
    Address { kind: kind.to_owned(), address: address.to_owned() }
}

impl CheckCx {
    /// A name no other check uses, for a Node, an instance or anything else.
    pub fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }

    /// An instance named like the Node of the same suffix, with a type, zone, region and one internal address.
    /// Not in the cloud yet: see [`CheckCx::put_instance`].
    pub fn instance(&self, suffix: &str) -> Instance {
        let id = self.session.profile_instance_id(&self.name(suffix));
        let location = self.session.profile_location().clone();
        Instance {
            provider_id: Some(self.provider_id(&id)),
            id,
            name: self.name(suffix),
            instance_type: "m1.small".to_owned(),
            zone: location.zone,
            region: location.region,
            addresses: vec![address("InternalIP", "192.0.2.10"), address("ExternalIP", "198.51.100.10")],
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        }
    }

    /// Brings addresses, type and value, into the order in which the CCM reports them; provided ones come first.
    pub fn in_reported_order(&self, addresses: &mut [(String, String)], provided: &[&str]) {
        self.session.in_reported_order(addresses, provided);
    }

    /// The providerID the profile's format gives an instance id.
    pub fn provider_id(&self, instance_id: &str) -> String {
        self.session.profile_provider_id(instance_id)
    }

    /// Puts an instance into the cloud, or changes it; it goes when the check ends.
    ///
    /// # Errors
    /// [`Stop::NotObservable`] when the cloud's API cannot show its addresses; else that the cloud refuses.
    pub async fn put_instance(&self, instance: &Instance) -> Result<(), Stop> {
        let cloud = self.session.cloud();
        if let Some(lack) = cloud.shown().lacks(&instance.addresses) {
            let dialect = &self.session.plan().profile.dialect;
            return Err(Stop::NotObservable(format!("the API of {dialect} cannot show it: {lack}")));
        }
        cloud.put_instance(instance).await?;
        self.on_end(Undo::Instance(instance.id.clone()));
        Ok(())
    }

    /// Takes an instance away, as a cloud's operator would.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn delete_instance(&self, instance: &Instance) -> Result<(), Stop> {
        Ok(self.session.cloud().remove_instance(&instance.id).await?)
    }

    /// Creates a synthetic Node; it goes when the check ends. A Ready one is kept Ready.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn create_node(&self, plan: NodePlan) -> Result<Arc<Node>, Stop> {
        let ready = plan.ready;
        let node = plan.into_node();
        let name = node.name_any();
        self.on_end(Undo::Node(name.clone()));
        if ready == Ready::True {
            self.keep_heartbeat(&name).await?;
        }
        let created = self.nodes_api().create(&PostParams::default(), &node).await?;
        self.caught_up_node(&created).await?;
        Ok(Arc::new(created))
    }

    /// The Node as it is now.
    pub fn find_node(&self, name: &str) -> Option<Arc<Node>> {
        self.session.world().nodes.find("", name)
    }

    /// Merges `patch` into a Node.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch_node(&self, name: &str, patch: &serde_json::Value) -> Result<(), Stop> {
        let patched = self.nodes_api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.caught_up_node(&patched).await
    }

    /// Sets the Ready condition; `True` is kept so by a heartbeat from then on.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn set_ready(&self, name: &str, status: &str) -> Result<(), Stop> {
        if status == "True" {
            self.keep_heartbeat(name).await?;
        } else {
            self.stop_heartbeat(name);
        }
        let patch = json!({"status": {"conditions": [ready_condition(status)]}});
        let patched =
            self.nodes_api().patch_status(name, &PatchParams::default(), &Patch::Strategic(&patch)).await?;
        self.caught_up_node(&patched).await
    }

    /// Puts the uninitialized taint back, so that the CCM initialises the Node again (contract ENV-08).
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn retaint(&self, name: &str) -> Result<(), Stop> {
        let node = self.nodes_api().get(name).await?;
        let mut taints = node.spec.and_then(|s| s.taints).unwrap_or_default();
        taints.push(uninitialized());
        self.patch_node(name, &json!({"spec": {"taints": taints}})).await
    }

    /// Deletes a Node object.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_node(&self, name: &str) -> Result<(), Stop> {
        self.nodes_api().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Nodes, through this check's own client.
    pub fn nodes_api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    async fn caught_up_node(&self, node: &Node) -> Result<(), Stop> {
        let version = node.resource_version().unwrap_or_default();
        self.caught_up(|| self.session.world().nodes.has_caught_up("", &node.name_any(), &version)).await
    }

    /// Renews the Node's heartbeat Lease until the check ends: else the controller manager finds the Node gone silent.
    async fn keep_heartbeat(&self, name: &str) -> Result<(), Stop> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), HEARTBEATS);
        let lease = Lease {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(name.to_owned()),
                lease_duration_seconds: Some(40),
                renew_time: Some(MicroTime(Timestamp::now())),
                ..LeaseSpec::default()
            }),
        };
        match api.create(&PostParams::default(), &lease).await {
            Ok(_) => self.on_end(Undo::Heartbeat(name.to_owned())),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        let held = name.to_owned();
        let task = tokio::spawn(async move {
            loop {
                let patch = json!({"spec": {"renewTime": MicroTime(Timestamp::now())}});
                if let Err(error) = api.patch(&held, &PatchParams::default(), &Patch::Merge(&patch)).await {
                    tracing::debug!(%error, node = held, "heartbeat not renewed");
                }
                pause(Duration::from_secs(8)).await;
            }
        });
        self.stop_heartbeat(name);
        self.heartbeats
            .lock()
            .expect("no holder of this lock panics")
            .insert(name.to_owned(), task.abort_handle());
        Ok(())
    }

    fn stop_heartbeat(&self, name: &str) {
        let task = self.heartbeats.lock().expect("no holder of this lock panics").remove(name);
        if let Some(task) = task {
            task.abort();
        }
    }

    pub(super) async fn undo_node(&self, name: &str) -> Result<(), String> {
        self.stop_heartbeat(name);
        gone(self.nodes_api().delete(name, &DeleteParams::default()).await)
    }

    pub(super) async fn undo_heartbeat(&self, name: &str) -> Result<(), String> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), HEARTBEATS);
        gone(api.delete(name, &DeleteParams::default()).await)
    }
}

/// A deletion that found nothing to delete has reached its aim.
pub(super) fn gone<T>(outcome: Result<T, kube::Error>) -> Result<(), String> {
    match outcome {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(crate::check::chain(&error)),
    }
}
