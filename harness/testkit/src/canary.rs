//! A canary: an ordinary Pod, like a user's or that of cluster DNS, that shows when Nodes are usable.

use super::{CheckCx, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::{
    Matcher, Observation, Observed, ReadError, ReadSource, gone, holds, matcher, poll,
};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A Pod without special requirements: it runs if, and only if, its node is usable.
#[derive(Clone)]
pub struct Canary<'a> {
    cx: &'a CheckCx,
    namespace: String,
    name: String,
    uid: Option<String>,
}

/// It is scheduled to a Node.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let canary = cx.canary().await?;
/// canary.becomes(is_placed()).when("once its Node is initialised").await
/// # }
/// ```
pub fn is_placed() -> Matcher<Option<Arc<Pod>>> {
    holds("is placed", |pod: &Option<Arc<Pod>>| place_of(pod.as_deref()).is_some()).expecting("a Node for it")
}

/// It is not scheduled to any Node.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.absent_machine(machine("a"));
/// cx.node(machine.node().with_room()).await?;
/// let canary = cx.canary_on(&machine.name()).await?;
/// canary.keeps(is_unplaced()).when("while the cloud does not know its machine").await
/// # }
/// ```
pub fn is_unplaced() -> Matcher<Option<Arc<Pod>>> {
    matcher("is not placed", |pod: &Option<Arc<Pod>>| match place_of(pod.as_deref()) {
        None => Observation::Matched(()),
        Some(node) => Observation::Impossible(format!("it is on Node {node}")),
    })
    .expecting("no Node for it")
}

fn place_of(pod: Option<&Pod>) -> Option<&str> {
    pod?.spec.as_ref()?.node_name.as_deref()
}

impl Subject for Canary<'_> {
    type Snapshot = Option<Arc<Pod>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let name = format!("{}/{}", self.namespace, self.name);
        SubjectName { kind: "Pod", name, uid: self.uid.clone() }
    }

    async fn read(&self, reach: ReadSource) -> Result<Self::Snapshot, ReadError> {
        match reach {
            ReadSource::Cache => {
                Ok(self.cx.session.world().pods.current()?.find(&self.namespace, &self.name))
            }
            ReadSource::Origin => {
                let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.namespace);
                Ok(api.get_opt(&self.name).await?.map(Arc::new))
            }
        }
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

impl Canary<'_> {
    /// Whether it cannot be scheduled, as soon as that is known; `false` if it was placed.
    async fn has_to_wait(&self) -> Result<bool, CheckError> {
        let decided = matcher("is placed, or finds no node", |pod: &Option<Arc<Pod>>| {
            if place_of(pod.as_deref()).is_some() {
                return Observation::Matched(false);
            }
            let status = pod.as_ref().and_then(|p| p.status.as_ref());
            let conditions = status.and_then(|s| s.conditions.as_ref()).into_iter().flatten();
            match conditions.into_iter().any(|c| c.type_ == "PodScheduled" && c.status == "False") {
                true => Observation::Matched(true),
                false => Observation::Pending(String::new()),
            }
        });
        let wait = self.becomes(decided).within(self.cx.limits().start()).when("without a CCM");
        // No claim about the CCM: it does not run yet.
        wait.await.map_err(|stop| match stop {
            CheckError::Violation(violation) => {
                CheckError::Error(format!("no scheduler decides: {violation}"))
            }
            other => other,
        })
    }

    async fn is_removed(&self) -> Verdict {
        let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.namespace);
        api.delete(&self.name, &DeleteParams::default().grace_period(0)).await?;
        self.becomes(gone()).within(self.cx.limits().start()).when("as it was deleted").await
    }

    /// Waits until it runs.
    ///
    /// # Errors
    /// [`CheckError::Violation`] with what keeps it from running.
    pub async fn gets_to_run(&self) -> Verdict {
        let running = holds("is Running", |pod: &Option<Arc<Pod>>| {
            pod.as_ref().and_then(|p| p.status.as_ref()).and_then(|s| s.phase.as_deref()) == Some("Running")
        });
        self.becomes(running).within(self.cx.limits().start()).when("once the Nodes are initialised").await
    }
}

impl CheckCx {
    /// Creates a canary Pod: no tolerations, no host network.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn canary(&self) -> Result<Canary<'_>, CheckError> {
        self.canary_where(json!({})).await
    }

    /// Creates a canary Pod before any CCM runs, and verifies that it finds no Node. A scheduler on a busy machine may not have
    /// seen yet that the Nodes are tainted, and place the first one; then another one takes its place.
    ///
    /// # Errors
    /// [`CheckError::Error`] if each of them is scheduled anyway: then the cluster is not cold.
    pub async fn waiting_canary(&self) -> Result<Canary<'_>, CheckError> {
        let began = Instant::now();
        loop {
            let canary = self.canary().await?;
            if canary.has_to_wait().await? {
                return Ok(canary);
            }
            if began.elapsed() > self.limits().start() {
                let pod = canary.read(ReadSource::Origin).await?;
                return Err(CheckError::Error(format!(
                    "the cluster is not cold: ordinary Pods are placed on its Nodes without a CCM: {}",
                    pod.observed()
                )));
            }
            canary.is_removed().await?;
        }
    }

    /// Creates a canary Pod that can only run on the Node of this name.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn canary_on(&self, node: &str) -> Result<Canary<'_>, CheckError> {
        self.canary_where(json!({"kubernetes.io/hostname": node})).await
    }

    async fn canary_where(&self, selector: Value) -> Result<Canary<'_>, CheckError> {
        let namespace = self.namespace().await?;
        self.service_account_made(&namespace).await?;
        let state = self.session.state();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "canary"},
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": selector,
                "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
                                {"key": "node-role.kubernetes.io/master", "operator": "Exists"}],
                "containers": [{"name": "idle", "image": state.idle_image, "command": state.idle_command,
                                "args": ["idle"], "imagePullPolicy": "IfNotPresent"}],
            },
        }))
        .map_err(|error| CheckError::Error(format!("the canary Pod's manifest is invalid: {error}")))?;
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let created = api.create(&PostParams::default(), &pod).await?;
        Ok(Canary { cx: self, namespace, name: created.name_any(), uid: created.uid() })
    }

    /// Pods are refused in a namespace until the controller manager has created its default service account; on a new
    /// cluster that takes some seconds.
    ///
    /// # Errors
    /// When it is not created in time.
    pub async fn service_account_made(&self, namespace: &str) -> Verdict {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let made = async |seen: &mut String| {
            *seen = "the service account 'default' does not exist".to_owned();
            let found = api.get_opt("default").await;
            found.map_err(|error| ReadError::passing(harness_core::check::chain(&error)))
        };
        let what = "the namespace has its default service account";
        poll(what, self.limits().start(), Duration::from_millis(100), made).await?;
        Ok(())
    }
}
