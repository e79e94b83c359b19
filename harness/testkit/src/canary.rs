//! A canary: an ordinary Pod, like a user's or that of cluster DNS, that shows when Nodes are usable.

use super::{CheckCx, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::{Matcher, Observation, ReadError, ReadSource, holds, matcher, poll};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

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
    /// Verifies the method: before any CCM runs, the canary cannot be scheduled. A cluster that has just started may
    /// still wait for its scheduler.
    ///
    /// # Errors
    /// [`CheckError::Error`] if it is scheduled anyway: then the cluster is not cold.
    pub async fn has_to_wait(&self) -> Verdict {
        let unschedulable = holds("finds no node", |pod: &Option<Arc<Pod>>| {
            let status = pod.as_ref().and_then(|p| p.status.as_ref());
            let conditions = status.and_then(|s| s.conditions.as_ref());
            conditions.into_iter().flatten().any(|c| c.type_ == "PodScheduled" && c.status == "False")
        });
        let wait = self.becomes(unschedulable).within(self.cx.limits().start()).when("without a CCM");
        wait.await.map_err(|stop| match stop {
            CheckError::Violation(violation) => {
                CheckError::Error(format!("the cluster is not cold: {violation}"))
            }
            other => other,
        })
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
    pub(super) async fn service_account_made(&self, namespace: &str) -> Verdict {
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
