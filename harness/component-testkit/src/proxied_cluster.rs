//! A cluster whose API server reaches Nodes and Pods only through the network proxy under test.

use super::network_proxy::NetworkProxy;
use harness_clusters::{ContainerOp, LinkOp, Operation, Role};
use harness_config::yaml;
use harness_core::check::{CheckError, Verdict, chain};
use harness_core::files;
use harness_core::probe::{Observed, ReadError, poll};
use harness_session::ccm::{Applier, ObjectKey, key_of, pods_gone, pods_of, substitute};
use harness_testkit::CheckCx;
use harness_testkit::UndoStep;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long server and agents may take to run.
const UP: Duration = Duration::from_secs(90);
/// How long they may take to be removed.
const GONE: Duration = Duration::from_secs(60);
/// Interval between two reads.
const AGAIN: Duration = Duration::from_millis(100);

/// The cluster, with server and agents deployed and the direct connection blocked until the check ends.
pub struct ProxiedCluster<'a> {
    pub(super) proxy: &'a NetworkProxy<'a>,
    pub(super) applier: Applier,
    documents: Vec<Value>,
    server: ObjectKey,
    agents: ObjectKey,
    /// The Node of the check's Pods.
    pub(super) node: String,
}

impl std::fmt::Debug for ProxiedCluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxiedCluster").field("server", &self.server).field("agents", &self.agents).finish()
    }
}

impl<'a> NetworkProxy<'a> {
    /// Deploys server and agents if they are missing, and blocks the direct connection until the check ends.
    ///
    /// # Errors
    /// Not observable if the cluster has no machine for agents or the profile no manifests; a violation if they do not
    /// run.
    pub async fn on_a_cluster(&'a self) -> Result<ProxiedCluster<'a>, CheckError> {
        let cx = self.cx;
        let machines = cx.session().machines();
        let workers = machines.iter().filter(|machine| machine.role == Role::Worker);
        let names: Vec<String> = workers.map(|machine| machine.name.clone()).collect();
        let plane = machines.iter().find(|machine| machine.role == Role::ControlPlane);
        let (Some(node), Some(plane)) = (names.first(), plane) else {
            let why = "the cluster has no worker, so the API server's own machine would be the agents'";
            return Err(CheckError::NotObservable(why.to_owned()));
        };
        let documents = self.documents(&plane.name)?;
        let workload = |name: &str| {
            let found =
                documents.iter().map(key_of).find(|key| key.name == name && key.kind != "ServiceAccount");
            found.ok_or_else(|| CheckError::Error(format!("no manifest of the proxy has a workload {name}")))
        };
        let (server, agents) =
            (workload(&self.written.server_workload)?, workload(&self.written.agent_workload)?);
        let applier = Applier::new(cx.client().clone());
        let cluster = ProxiedCluster { proxy: self, applier, documents, server, agents, node: node.clone() };
        apply(cx, &cluster.applier, &cluster.documents).await?;
        cluster.runs(&cluster.server).await?;
        cluster.runs(&cluster.agents).await?;
        let way = addresses_of(cx, &names).await?;
        cx.undo_at_end(opening(&way));
        cx.session().cluster().operate(Operation::DirectWay { to: &way, op: LinkOp::Cut }).await?;
        Ok(cluster)
    }

    /// The manifests with all placeholders filled in.
    fn documents(&self, server: &str) -> Result<Vec<Value>, CheckError> {
        if self.written.manifests.is_empty() {
            return Err(CheckError::NotObservable(
                "networkProxy.manifests of the profile names none".to_owned(),
            ));
        }
        let image = self.cx.session().state().ccm_image.clone();
        let values = BTreeMap::from([("IMAGE".to_owned(), image), ("SERVER".to_owned(), server.to_owned())]);
        let mut all = documents_in(&self.written.manifests)?;
        for document in &mut all {
            substitute(document, &values);
            let name = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if name == self.written.server_workload || name == self.written.agent_workload {
                with_variables(document, &self.written.environment);
            }
        }
        Ok(all)
    }
}

/// The objects in these manifests.
pub(super) fn documents_in(manifests: &[PathBuf]) -> Result<Vec<Value>, CheckError> {
    let mut all = Vec::new();
    for file in manifests {
        let read: Vec<Value> = yaml::from_str_multi(&files::read(file)?, file)?;
        all.extend(read.into_iter().filter(|document| !document.is_null()));
    }
    Ok(all)
}

/// Adds variables to each container of a workload.
pub(super) fn with_variables(document: &mut Value, variables: &BTreeMap<String, String>) {
    let containers = document["spec"]["template"]["spec"]["containers"].as_array_mut();
    for container in containers.into_iter().flatten() {
        let own = container["env"].as_array().cloned().unwrap_or_default();
        let more = variables.iter().map(|(name, value)| json!({"name": name, "value": value}));
        container["env"] = own.into_iter().chain(more).collect();
    }
}

/// The container that is running in a Pod, or ran last.
fn container_of(pod: &Pod) -> Option<&String> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()?.container_id.as_ref()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

/// Applies the documents, unless the run is interrupted.
pub(super) async fn apply(cx: &CheckCx, applier: &Applier, documents: &[Value]) -> Verdict {
    let applied = async { Ok(applier.apply(documents).await) };
    cx.session().unless_interrupted(applied).await?.map_err(|error| CheckError::Error(chain(&error)))
}

/// Whether a Pod is ready with another container than this one.
fn has_restarted(pod: &Pod, killed: &str) -> bool {
    is_ready(pod) && container_of(pod).is_some_and(|id| id != killed)
}

impl ProxiedCluster<'_> {
    fn cx(&self) -> &CheckCx {
        self.proxy.cx
    }

    fn pods(&self, workload: &ObjectKey) -> Vec<Arc<Pod>> {
        pods_of(self.cx().session().world(), workload)
    }

    /// The number of Pods of a workload: as set in its spec, or by its controller.
    async fn wanted(&self, workload: &ObjectKey) -> Result<usize, kube::Error> {
        let ObjectKey { kind, namespace, name } = workload;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{}s/{name}", kind.to_lowercase());
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let read: Value = self.cx().client().request(request).await?;
        let count = read["status"]["desiredNumberScheduled"].as_u64().or(read["spec"]["replicas"].as_u64());
        Ok(usize::try_from(count.unwrap_or(1)).unwrap_or_default().max(1))
    }

    /// Waits until every Pod of a workload is ready.
    async fn runs(&self, workload: &ObjectKey) -> Verdict {
        let up = async |seen: &mut String| {
            let wanted = self.wanted(workload).await.map_err(|error| ReadError::passing(chain(&error)))?;
            let pods = self.pods(workload);
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            *seen = format!("{ready} of {wanted} Pods ready: {}", pods.observed());
            Ok((ready == wanted && pods.len() == wanted).then_some(()))
        };
        let what = format!("{workload} runs");
        let waited = async { Ok(poll(&what, UP, AGAIN, up).await) };
        let waited = self.cx().session().unless_interrupted(waited).await?;
        waited.map_err(|error| {
            self.proxy.violation(
                &format!("{workload} runs on Nodes that no CCM has initialised"),
                "ready Pods",
                error.text,
            )
        })
    }

    async fn goes(&self, workload: &ObjectKey) -> Verdict {
        let documents: Vec<Value> =
            self.documents.iter().filter(|document| key_of(document) == *workload).cloned().collect();
        self.cx().undo_at_end(restoring(self.cx().client(), workload, &documents));
        let gone = async {
            self.applier.remove(&documents).await.map_err(|error| CheckError::Error(chain(&error)))?;
            Ok(pods_gone(self.cx().session().world(), std::slice::from_ref(workload), GONE).await?)
        };
        self.cx().session().unless_interrupted(gone).await
    }

    async fn comes(&self, workload: &ObjectKey) -> Verdict {
        let documents: Vec<Value> =
            self.documents.iter().filter(|document| key_of(document) == *workload).cloned().collect();
        apply(self.cx(), &self.applier, &documents).await?;
        self.cx().already_undone(&restoring(self.cx().client(), workload, &documents));
        self.runs(workload).await
    }

    /// Removes the agents until they are restored or the check ends.
    ///
    /// # Errors
    /// They are not removed.
    pub async fn agents_go(&self) -> Verdict {
        self.goes(&self.agents).await
    }

    /// Restores the agents.
    ///
    /// # Errors
    /// They do not run.
    pub async fn agents_come(&self) -> Verdict {
        self.comes(&self.agents).await
    }

    /// Removes the server until the check ends.
    ///
    /// # Errors
    /// It is not removed.
    pub async fn server_goes(&self) -> Verdict {
        self.goes(&self.server).await
    }

    /// The agents' Pods.
    ///
    /// # Errors
    /// Not observable with only one agent.
    pub fn several_agents(&self) -> Result<Vec<String>, CheckError> {
        let names: Vec<String> = self.pods(&self.agents).iter().map(|pod| pod.name_any()).collect();
        match names.len() {
            0 | 1 => Err(CheckError::NotObservable(format!(
                "there are {} agents, but two are needed",
                names.len()
            ))),
            _ => Ok(names),
        }
    }

    /// Kills the program of the agent in this Pod, and returns its container; its kubelet starts another one.
    ///
    /// # Errors
    /// The container is unknown or cannot be reached.
    pub async fn agent_is_killed(&self, name: &str) -> Result<String, CheckError> {
        let pods = self.pods(&self.agents);
        let pod = pods.iter().find(|pod| pod.name_any() == name);
        let id = pod.and_then(|pod| container_of(pod).cloned());
        let id = id.ok_or_else(|| CheckError::Error(format!("Pod {name} of an agent has no container")))?;
        let node = pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone()).unwrap_or_default();
        let session = &self.cx().session();
        session.signal_container(&node, &id, ContainerOp::Kill).await.map_err(CheckError::Error)?;
        Ok(id)
    }

    /// Waits until this Pod of an agent is ready with another container than the one that was killed: readiness alone may
    /// still be from before.
    ///
    /// # Errors
    /// It is not ready in time.
    pub async fn agent_is_back(&self, name: &str, killed: &str) -> Verdict {
        let back = async |seen: &mut String| {
            let pods = self.pods(&self.agents);
            *seen = pods.observed();
            let pod = pods.iter().find(|pod| pod.name_any() == name);
            Ok(pod.is_some_and(|pod| has_restarted(pod, killed)).then_some(()))
        };
        let what = format!("agent {name} runs again");
        let waited = async { Ok(poll(&what, UP, AGAIN, back).await) };
        let waited = self.cx().session().unless_interrupted(waited).await?;
        let promise = "an agent that was killed runs again";
        waited
            .map_err(|error| self.proxy.violation(promise, "a ready Pod with another container", error.text))
    }
}

/// Addresses of these Nodes and of their Pods, in the form of a packet filter.
async fn addresses_of(cx: &CheckCx, names: &[String]) -> Result<Vec<String>, CheckError> {
    let machines = cx.session().machines().iter().filter(|machine| names.contains(&machine.name));
    let mut all: Vec<String> = machines.filter_map(|machine| machine.ipv4).map(|ip| ip.to_string()).collect();
    let nodes = Api::<Node>::all(cx.client().clone()).list(&ListParams::default()).await?;
    for node in nodes.items.iter().filter(|node| names.contains(&node.name_any())) {
        let cidrs = node.spec.as_ref().and_then(|spec| spec.pod_cidr.clone());
        all.extend(cidrs.filter(|cidr| !cidr.contains(':')));
    }
    Ok(all)
}

/// Opens the direct connection from the control plane to these addresses again.
fn opening(to: &[String]) -> UndoStep {
    let (what, to) = (format!("opening the direct way to {} again", to.join(", ")), to.to_vec());
    UndoStep::new(what, move |session| {
        let to = to.clone();
        Box::pin(async move {
            let restore = Operation::DirectWay { to: &to, op: LinkOp::Restore };
            session.cluster().operate(restore).await.map_err(|error| chain(&error))
        })
    })
}

/// Applies server or agents of the proxy again.
fn restoring(client: &Client, workload: &ObjectKey, documents: &[Value]) -> UndoStep {
    let client = client.clone();
    let (what, documents) = (format!("restoring {workload} of the network proxy"), documents.to_vec());
    UndoStep::new(what, move |_| {
        let (client, documents) = (client.clone(), documents.clone());
        Box::pin(async move { Applier::new(client).apply(&documents).await.map_err(|error| chain(&error)) })
    })
}

/// Removes objects that a check applied.
pub(super) fn removing(client: &Client, documents: &[Value]) -> UndoStep {
    let client = client.clone();
    let names: Vec<String> = documents.iter().map(|document| key_of(document).to_string()).collect();
    let (what, documents) = (format!("deleting {}", names.join(", ")), documents.to_vec());
    UndoStep::new(what, move |_| {
        let (client, documents) = (client.clone(), documents.clone());
        Box::pin(async move { Applier::new(client).remove(&documents).await.map_err(|error| chain(&error)) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_behind_those_that_are_there() {
        let mut document = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}}}});
        with_variables(&mut document, &BTreeMap::from([("Y".to_owned(), "2".to_owned())]));
        let containers = &document["spec"]["template"]["spec"]["containers"];
        assert_eq!(containers[0]["env"][1]["name"], "Y");
        assert_eq!(containers[1]["env"][0]["value"], "2");
    }

    #[test]
    fn a_killed_container_has_restarted_when_another_is_ready() {
        let pod = |id: &str, ready: &str| -> Pod {
            let containers = json!([{"name": "agent", "containerID": id, "image": "i", "imageID": "i", "ready": true, "restartCount": 0}]);
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let status = json!({"conditions": conditions, "containerStatuses": containers});
            serde_json::from_value(json!({"status": status})).expect("a Pod")
        };
        assert!(!has_restarted(&pod("old", "True"), "old"), "said from before");
        assert!(!has_restarted(&pod("new", "False"), "old"));
        assert!(has_restarted(&pod("new", "True"), "old"));
    }
}
