//! Synthetic Nodes (contract ENV-07): Node objects without a kubelet.

use super::node_plan::{NodePlan, Ready, condition, uninitialized};
use super::undo_steps::{Undo, gone};
use super::{Calls, CheckCx, Subject};
use harness_clouds::{Entry, Op};
use harness_config::Timing;
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{ReadError, ReadSource};
use harness_session::k8s::{Version, provider_id};
use k8s_openapi::api::core::v1::{self as core, NodeCondition, Taint};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;

/// A Node: one of the check's own, or one of the cluster's.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.machine(machine("a")).await?;
/// let node: Node<'_> = cx.node(machine.node()).await?;
/// node.set_ready(Ready::Unknown).await?;
/// node.keeps(present()).when("while its machine exists").await
/// # }
/// ```
#[derive(Clone)]
pub struct Node<'a> {
    cx: &'a CheckCx,
    name: String,
    /// `None` for one of the cluster's: it may be registered again.
    uid: Option<String>,
    machine: Vec<String>,
}

impl<'a> Node<'a> {
    /// Applies `patch` as a merge patch.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn patch(&self, patch: &serde_json::Value) -> Result<(), CheckError> {
        let patched = self.api().patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.cx.caught_up_node(&patched).await
    }

    /// Sets or, with `None`, removes a label.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn label(&self, key: &str, value: Option<&str>) -> Result<(), CheckError> {
        self.patch(&json!({"metadata": {"labels": {key: value}}})).await
    }

    /// Sets the Ready condition; `True` is then maintained by heartbeats.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn set_ready(&self, ready: Ready) -> Result<(), CheckError> {
        if ready == Ready::True {
            self.cx.keep_heartbeat(&self.name).await?;
        } else {
            self.cx.stop_heartbeat(&self.name);
        }
        self.has_conditions(ready.condition().into_iter().collect()).await
    }

    /// Sets the condition `NetworkUnavailable`, which reports whether a cloud's routes are missing.
    pub(super) async fn says_network_is_unavailable(&self, status: &str) -> Result<(), CheckError> {
        self.has_conditions(vec![condition("NetworkUnavailable", status, "NoRouteCreated")]).await
    }

    /// Reports a condition as its kubelet would, with the current time as heartbeat.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn reports(&self, type_: &str, status: &str) -> Result<(), CheckError> {
        self.has_conditions(vec![condition(type_, status, "Synthetic")]).await
    }

    async fn has_conditions(&self, conditions: Vec<NodeCondition>) -> Result<(), CheckError> {
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        let patched = self.api().patch_status(&self.name, &PatchParams::default(), &patch).await?;
        self.cx.caught_up_node(&patched).await
    }

    /// Puts the uninitialized taint back, so that the CCM initialises it again (contract ENV-08).
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn retaint(&self) -> Result<(), CheckError> {
        self.adds_taint(uninitialized()).await
    }

    /// Adds a taint to the existing ones.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn adds_taint(&self, taint: Taint) -> Result<(), CheckError> {
        let node = self.api().get(&self.name).await?;
        let mut taints = node.spec.and_then(|s| s.taints).unwrap_or_default();
        taints.push(taint);
        self.patch(&json!({"spec": {"taints": taints}})).await
    }

    /// Removes the taints with that key.
    ///
    /// # Errors
    /// When the API server refuses.
    pub(super) async fn removes_taint(&self, key: &str) -> Result<(), CheckError> {
        let node = self.api().get(&self.name).await?;
        let mut taints = node.spec.and_then(|s| s.taints).unwrap_or_default();
        taints.retain(|taint| taint.key != key);
        self.patch(&json!({"spec": {"taints": taints}})).await
    }

    /// Deletes the object.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self) -> Result<(), CheckError> {
        self.api().delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Its recent versions as a watch showed them, oldest first.
    ///
    /// # Errors
    /// When the watch is broken or behind.
    pub fn history(&self) -> Result<Vec<Version<core::Node>>, CheckError> {
        let mut versions = self.cx.session.world().nodes.current()?.history("", &self.name);
        versions.retain(|version| self.has_uid_of(&version.object));
        Ok(versions)
    }

    /// Calls to the cloud about its machine.
    pub fn calls(&self) -> Calls<'a> {
        let this = self.clone();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call))
    }

    /// Calls to the cloud that may have returned its machine: those about it, and lists of all.
    pub fn looks(&self) -> Calls<'a> {
        let this = self.clone();
        let lists_all = |call: &Entry| call.op == Op::InstanceList && call.resource.is_none();
        Calls::about(self.cx, self.name(), move |call| this.concerns(call) || lists_all(call))
    }

    /// The check that uses it.
    pub(super) fn check(&self) -> &'a CheckCx {
        self.cx
    }

    fn has_uid_of(&self, node: &core::Node) -> bool {
        self.uid.is_none() || node.metadata.uid == self.uid
    }

    fn api(&self) -> Api<core::Node> {
        Api::all(self.cx.client.clone())
    }
}

impl Subject for Node<'_> {
    type Snapshot = Option<Arc<core::Node>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "Node", name: self.name.clone(), uid: self.uid.clone() }
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Snapshot, ReadError> {
        let found = match reach {
            ReadSource::Cache => self.cx.session.world().nodes.current()?.find("", &self.name),
            ReadSource::Origin => self.api().get_opt(&self.name).await?.map(Arc::new),
        };
        Ok(found.filter(|node| self.has_uid_of(node)))
    }

    fn concerns(&self, call: &Entry) -> bool {
        let resource = call.resource.as_deref().map(|r| r.split_once('=').map_or(r, |(_, value)| value));
        self.machine.iter().any(|name| resource == Some(name))
    }
}

/// The name of all these Nodes together in failures.
pub(super) fn together(kind: &'static str, nodes: &[Node<'_>]) -> SubjectName {
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    SubjectName { kind, name: names.join(", "), uid: None }
}

impl CheckCx {
    /// A name that no other check uses, for a Node, a machine or anything else.
    pub fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }

    /// A suffix that this check has not used yet.
    pub fn fresh(&self, start: &str) -> String {
        format!("{start}-{}", harness_session::suffix(self.session.next_number()))
    }

    /// Registers a synthetic Node; it is removed when the check ends. A Ready one is kept Ready.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn node(&self, plan: NodePlan) -> Result<Node<'_>, CheckError> {
        let (ready, machine) = (plan.ready, plan.machine.clone());
        let node = plan.into_node();
        let name = node.name_any();
        self.on_end(Undo::Node(name.clone()));
        if ready == Ready::True {
            self.keep_heartbeat(&name).await?;
        }
        let api: Api<core::Node> = Api::all(self.client.clone());
        let created = api.create(&PostParams::default(), &node).await?;
        self.caught_up_node(&created).await?;
        Ok(Node { cx: self, name, uid: created.uid(), machine })
    }

    /// Continues only if the CCM refreshes addresses often enough to observe it.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] with default timing, with which it does so every five minutes.
    pub fn addresses_are_refreshed_often(&self) -> Result<(), CheckError> {
        match self.session.plan().timing {
            Timing::Fast => Ok(()),
            Timing::Default => Err(CheckError::NotObservable(
                "with default timing addresses are refreshed every five minutes; 'timing: fast' shows it"
                    .to_owned(),
            )),
        }
    }

    /// All Nodes of the cluster, according to the watch.
    ///
    /// # Errors
    /// When the watch on Nodes is broken or behind.
    pub fn all_nodes(&self) -> Result<Vec<Arc<core::Node>>, ReadError> {
        Ok(self.session.world().nodes.current()?.all())
    }

    /// Whether a Node has a providerID in another format than the CCM's, as those of an existing cluster may have: a CCM
    /// can find its machine only by name, and need not do so.
    pub fn is_of_another_cloud(&self, node: &core::Node) -> bool {
        provider_id(node).is_some_and(|id| !self.session.profile_gives(&id))
    }

    /// One of the cluster's own Nodes, which may be registered again.
    pub(super) fn real_node(&self, name: &str) -> Node<'_> {
        Node { cx: self, name: name.to_owned(), uid: None, machine: vec![name.to_owned()] }
    }

    /// How often since then a Node was created, deleted, or changed in what `facts` returns for it.
    ///
    /// # Errors
    /// When the watch on Nodes is broken or behind.
    pub fn node_changes_since<F: PartialEq>(
        &self,
        since: tokio::time::Instant,
        facts: impl Fn(&core::Node) -> F,
    ) -> Result<usize, ReadError> {
        Ok(self.session.world().nodes.current()?.changes_since(since, facts))
    }

    async fn caught_up_node(&self, node: &core::Node) -> Result<(), CheckError> {
        let version = node.resource_version().unwrap_or_default();
        self.caught_up(|| self.session.world().nodes.has_caught_up("", &node.name_any(), &version)).await
    }

    pub(super) async fn undo_node(&self, name: &str) -> Result<(), String> {
        self.stop_heartbeat(name);
        let api: Api<core::Node> = Api::all(self.client.clone());
        gone(async || api.delete(name, &DeleteParams::default()).await).await
    }
}
