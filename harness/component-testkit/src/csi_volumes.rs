//! Volumes, claims and Pods on a cluster with migrated volumes, and the resulting calls of the drivers.

use super::csi_migration::{CsiCluster, Placed, shown};
use super::proxied_cluster::removing;
use harness_components::csi_migration::{AZURE_SECRET, Moved};
use harness_config::CsiDriver;
use harness_core::check::{CheckError, chain};
use harness_core::probe::{ReadError, poll};
use harness_session::ccm::log_end;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a Pod may take to get its volumes and to run.
const RUNS: Duration = Duration::from_secs(75);
/// How long a call may take to be reported once it must have happened.
const REPORTED: Duration = Duration::from_secs(45);
/// Interval between two reads, also of logs.
const AGAIN: Duration = Duration::from_millis(100);
const LOOKS: Duration = Duration::from_millis(700);
/// How many lines of a log are searched.
const LINES: i64 = 20_000;
/// The key of a log line that reports a call.
const CALL: &str = "csiCall";

/// A stored volume, with a claim for it and a Pod that uses it.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cluster: &CsiCluster<'_>, csi: &CsiMigration<'_>) -> Verdict {
/// let moved = csi.moved()[0];
/// let volume = StoredVolume::on(moved, "data", cluster.named("vol"), &cluster.workers[0]);
/// cluster.makes_with_pods(&[volume]).await?;
/// cluster.pods_run(&["data"], "a Pod with an in-tree volume runs").await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVolume {
    /// Its driver.
    pub moved: Moved,
    /// Its own short name.
    pub name: String,
    /// Its name in its source.
    pub id: String,
    /// Labels of the stored volume.
    pub labels: BTreeMap<String, String>,
    /// The zones that its affinity names by the cluster's key.
    pub affinity: Vec<String>,
    /// The Node of its Pod; `None`: the scheduler decides.
    pub node: Option<String>,
    /// The Node that its Pod prefers, if the scheduler decides.
    pub rather: Option<String>,
}

/// A call that a driver got.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cluster: &CsiCluster<'_>) -> Verdict {
/// let handle = cluster.named("vol");
/// let ours = |call: &CsiCall| call.volume() == handle;
/// let about = ("the driver publishes the volume", "a call with its handle");
/// cluster.is_called(about, "NodePublishVolume", ours, ours).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CsiCall {
    /// The driver.
    pub driver: String,
    /// The Node on which the driver runs.
    pub node: String,
    /// The method.
    pub method: String,
    /// The request, with the field names of the protocol.
    pub request: Value,
}

impl CsiCall {
    /// The volume that it is about.
    pub fn volume(&self) -> &str {
        self.request["volume_id"].as_str().unwrap_or_default()
    }
}

impl StoredVolume {
    /// A volume without zones, for a Pod on that Node.
    pub fn on(moved: Moved, name: &str, id: String, place: &Placed) -> StoredVolume {
        StoredVolume {
            moved,
            name: name.to_owned(),
            id,
            labels: BTreeMap::new(),
            affinity: Vec::new(),
            node: Some(place.node.clone()),
            rather: None,
        }
    }
}

impl CsiCluster<'_> {
    /// The check's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of a cluster-scoped object of the check.
    pub fn named(&self, name: &str) -> String {
        format!("{}-{name}", self.cx().prefix())
    }

    /// Where an object of the check's namespace is read.
    pub fn path(&self, resource: &str, name: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}/{name}", self.namespace)
    }

    /// Where a stored volume of the check's is read.
    pub fn path_of_volume(&self, name: &str) -> String {
        format!("/api/v1/persistentvolumes/{}", self.named(name))
    }

    /// The manifest of a stored volume.
    pub fn volume(&self, wanted: &StoredVolume) -> Value {
        let StoredVolume { moved, name, id, labels, affinity, .. } = wanted;
        let mut spec = json!({
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", moved.source: moved.source_of(id),
            "claimRef": {"namespace": self.namespace, "name": name},
        });
        if moved.driver == CsiDriver::AzureFile {
            spec[moved.source]["secretNamespace"] = json!(self.namespace);
        }
        if !affinity.is_empty() {
            let expression =
                json!({"key": harness_components::csi_migration::ZONE, "operator": "In", "values": affinity});
            let terms = json!([{"matchExpressions": [expression]}]);
            spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
        }
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": self.named(name), "labels": labels}, "spec": spec,
        })
    }

    /// Creates cluster-scoped objects, which are removed when the check ends.
    ///
    /// # Errors
    /// The API server refuses one.
    pub async fn makes(&self, documents: Vec<Value>) -> Result<(), CheckError> {
        self.cx().undo_at_end(removing(self.cx().client(), &documents));
        self.applies(&documents).await
    }

    /// Creates objects in the check's namespace, which are removed with it.
    ///
    /// # Errors
    /// The API server refuses one.
    pub async fn makes_inside(&self, mut documents: Vec<Value>) -> Result<(), CheckError> {
        for document in &mut documents {
            document["metadata"]["namespace"] = json!(self.namespace);
        }
        self.applies(&documents).await
    }

    /// Creates stored volumes, and for each a claim and, once the claim is bound, a Pod of the same name: kubelets and
    /// controllers are slow to check again a claim that was not bound.
    ///
    /// # Errors
    /// The API server refuses one, or a claim is not bound.
    pub async fn makes_with_pods(&self, wanted: &[StoredVolume]) -> Result<(), CheckError> {
        self.makes(wanted.iter().map(|one| self.volume(one)).collect()).await?;
        let mut inside = vec![json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": AZURE_SECRET},
            "stringData": {"azurestorageaccountname": "account", "azurestorageaccountkey": "a2V5"},
        })];
        for one in wanted {
            inside.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": one.name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": self.named(&one.name),
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }));
        }
        self.makes_inside(inside).await?;
        let bound = |claims: &Value| {
            let items = claims["items"].as_array().into_iter().flatten();
            let count = items.filter(|claim| claim["status"]["phase"] == "Bound").count();
            if count >= wanted.len() { Ok(()) } else { Err(format!("{count} of {} are bound", wanted.len())) }
        };
        let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims", self.namespace);
        self.sees(("claims get the volumes that they name", "phase Bound"), RUNS, &path, bound).await?;
        let pods = wanted.iter().map(|one| {
            let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": one.name}});
            let mut pod = self.pod(&one.name, &volume, one.node.as_deref());
            if let Some(node) = &one.rather {
                pod["spec"]["affinity"] = rather(node);
            }
            pod
        });
        self.makes_inside(pods.collect()).await
    }

    /// A Pod with a volume, on that Node or wherever the scheduler places it.
    pub fn pod(&self, name: &str, volume: &Value, node: Option<&str>) -> Value {
        let state = self.cx().session().state();
        let mut container = json!({
            "name": "idle", "image": state.idle_image, "args": ["idle"], "imagePullPolicy": "IfNotPresent",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        });
        if !state.idle_command.is_empty() {
            container["command"] = json!(state.idle_command);
        }
        let mut spec = Map::new();
        spec.insert("hostNetwork".into(), json!(true));
        spec.insert("automountServiceAccountToken".into(), json!(false));
        spec.insert("enableServiceLinks".into(), json!(false));
        spec.insert("terminationGracePeriodSeconds".into(), json!(0));
        spec.insert("tolerations".into(), json!([{"operator": "Exists"}]));
        spec.insert("containers".into(), json!([container]));
        spec.insert("volumes".into(), json!([volume]));
        if let Some(node) = node {
            spec.insert("nodeName".into(), json!(node));
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    }

    /// Waits until Pods run; returns the Node of each.
    ///
    /// # Errors
    /// One does not run; an error if Pods cannot be watched.
    pub async fn pods_run(&self, names: &[&str], promise: &str) -> Result<Vec<String>, CheckError> {
        let mut is_read = true;
        let running = async |seen: &mut String| {
            let mut nodes = Vec::new();
            let pods = self.cx().session().world().pods.current();
            is_read = pods.is_ok();
            let pods = pods?;
            for name in names {
                let pod = pods.find(&self.namespace, name);
                let phase = pod.as_ref().and_then(|pod| pod.status.as_ref()?.phase.as_deref());
                if phase != Some("Running") {
                    *seen = format!("{name}: {}", shown(pod.as_deref()));
                    return Ok(None);
                }
                nodes.extend(pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone()));
            }
            Ok::<_, ReadError>(Some(nodes))
        };
        let waited = async { Ok(poll(promise, RUNS, AGAIN, running).await) };
        match self.cx().session().unless_interrupted(waited).await? {
            Ok(nodes) => Ok(nodes),
            Err(error) if !is_read => Err(CheckError::Error(error.text)),
            Err(error) => Err(self.csi.violation(promise, "running Pods", self.explained(error.text).await)),
        }
    }

    /// The drivers' calls since they were started.
    ///
    /// # Errors
    /// Not observable if they report no calls at all.
    pub async fn calls(&self) -> Result<Vec<CsiCall>, CheckError> {
        let (node, controller) = (&self.csi.written.node_workload, &self.csi.written.controller_workload);
        let pods = self.cx().session().world().pods.all();
        let ours = pods.iter().filter(|pod| {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            name.starts_with(node.as_str()) || name.starts_with(controller.as_str())
        });
        let mut calls = Vec::new();
        for pod in ours {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let api: Api<Pod> = Api::namespaced(self.cx().client().clone(), namespace);
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let log = async { Ok(log_end(&api, (name, None), LINES, false, false).await) };
            let log = self.cx().session().unless_interrupted(log).await?;
            let log =
                log.map_err(|error| CheckError::Error(format!("the log of {name}: {}", chain(&error))))?;
            calls.extend(log.text.lines().filter_map(call));
        }
        if calls.is_empty() {
            let why = format!("no line in the logs of {node} and {controller} has the key '{CALL}'");
            return Err(CheckError::NotObservable(why));
        }
        Ok(calls)
    }

    /// Waits until the drivers report a call of that method that fits.
    ///
    /// # Errors
    /// There is none in time; `about` selects the calls that the failure shows.
    pub async fn is_called(
        &self,
        (promise, expected): (&str, &str),
        method: &str,
        fits: impl Fn(&CsiCall) -> bool,
        about: impl Fn(&CsiCall) -> bool,
    ) -> Result<CsiCall, CheckError> {
        let mut not_observable = None;
        let reported = async |seen: &mut String| match self.calls().await {
            Ok(calls) => {
                let of_it = calls.iter().filter(|call| call.method == method && about(call));
                let words: Vec<String> = of_it.map(|call| call.request.to_string()).collect();
                let count = words.len();
                let some: Vec<String> = words.into_iter().rev().take(3).collect();
                *seen = format!("{count} calls of {method}, the last: {}", some.join(", "));
                Ok(calls.into_iter().find(|call| call.method == method && fits(call)))
            }
            Err(stop) => {
                not_observable = Some(stop);
                Err(ReadError { text: "the calls cannot be read".to_owned(), fatal: true })
            }
        };
        let reported = poll(promise, REPORTED, LOOKS, reported).await;
        match (reported, not_observable) {
            (Ok(call), _) => Ok(call),
            (Err(_), Some(stop)) => Err(stop),
            (Err(error), None) => Err(self.csi.violation(promise, expected, error.text)),
        }
    }
}

/// The affinity of a Pod that prefers that Node.
fn rather(node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let preferred = json!([{"weight": 100, "preference": {"matchFields": [field]}}]);
    json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
}

/// The call that a log line reports.
fn call(line: &str) -> Option<CsiCall> {
    let line = line.get(line.find('{')?..)?;
    let mut logged: Value = serde_json::from_str(line).ok()?;
    let logged = logged.get_mut(CALL)?;
    let text = |key: &str| logged[key].as_str().unwrap_or_default().to_owned();
    let (driver, node, method) = (text("driver"), text("node"), text("method"));
    Some(CsiCall { driver, node, method, request: logged["request"].take() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_a_call_or_it_does_not() {
        let line =
            r#"{"csiCall":{"driver":"d","node":"n","method":"NodeStageVolume","request":{"volume_id":"v"}}}"#;
        let parsed = call(line).expect("a call");
        assert_eq!((parsed.driver.as_str(), parsed.volume()), ("d", "v"));
        assert_eq!(call("watch: {broken"), None);
        assert_eq!(call(r#"{"level":"info"}"#), None);
    }
}
