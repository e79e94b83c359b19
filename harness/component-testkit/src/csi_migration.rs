//! The drivers to which in-tree volumes were migrated, on a cluster whose kubelets need them.

use super::csi_judged::Judged;
use super::proxied_cluster::{apply, documents_in, with_variables};
use harness_clusters::Role;
use harness_components::csi_migration::{Moved, ZONE, moved};
use harness_config::{CsiDriver, CsiMigration as Written};
use harness_core::check::{CheckError, SubjectName, Violation};
use harness_core::probe::{Observed, Promise, ReadError, Span, poll};
use harness_session::ccm::{Applier, key_of, substitute};
use harness_testkit::CheckCx;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long drivers may take to run and to register.
const UP: Duration = Duration::from_secs(90);
/// Interval between two reads.
const AGAIN: Duration = Duration::from_millis(200);
/// Zones of the workers, one after the other, and of the control plane; the names fit the formats of all clouds.
const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];
const ZONE_OF_PLANE: &str = "us-east-1c";

/// The drivers under test.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let csi = CsiMigration::of(cx)?;
/// csi.has_provisioner()?;
/// cx.record("drivers", csi.moved().len());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct CsiMigration<'a> {
    pub(super) cx: &'a CheckCx,
    pub(super) written: &'a Written,
}

/// A Node and its zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The Node.
    pub node: String,
    /// Its zone, as a CCM would report it.
    pub zone: String,
}

/// A cluster with the drivers on its workers but not on its control plane.
///
/// ```
/// # use harness_component_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let csi = CsiMigration::of(cx)?;
/// let cluster = csi.on_a_cluster().await?;
/// let drivers = cluster.drivers_of(&cluster.workers[0].node).await?;
/// cx.record("drivers", drivers.join(", "));
/// # Ok(()) }
/// ```
pub struct CsiCluster<'a> {
    pub(super) csi: &'a CsiMigration<'a>,
    pub(super) applier: Applier,
    pub(super) namespace: String,
    /// The workers.
    pub workers: Vec<Placed>,
    /// The machine of the control plane.
    pub plane: Placed,
}

impl std::fmt::Debug for CsiCluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsiCluster").field("workers", &self.workers).field("plane", &self.plane).finish()
    }
}

/// Reads an object; null if it does not exist.
async fn read(cx: &CheckCx, path: &str) -> Result<Value, ReadError> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| ReadError::passing(error.to_string()))?;
    match cx.client().request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
        read => Ok(read?),
    }
}

impl<'a> CsiMigration<'a> {
    /// The drivers under test.
    ///
    /// # Errors
    /// The profile names none.
    pub fn of(cx: &'a CheckCx) -> Result<CsiMigration<'a>, CheckError> {
        let written = cx.session().plan().profile.csi_migration.as_ref();
        let written =
            written.ok_or_else(|| CheckError::Error("the profile names no CSI driver".to_owned()))?;
        Ok(CsiMigration { cx, written })
    }

    /// A violation.
    pub fn violation(&self, promise: &str, expected: &str, seen: impl Into<String>) -> CheckError {
        CheckError::Violation(Box::new(Violation {
            subject: Some(self.subject()),
            ..Violation::new(promise, expected, seen)
        }))
    }

    /// The subject of violations.
    fn subject(&self) -> SubjectName {
        SubjectName { kind: "cluster with", name: self.cx.session().plan().profile.name.clone(), uid: None }
    }

    /// The plugins that were migrated to the drivers.
    pub fn moved(&self) -> Vec<Moved> {
        self.written.drivers.iter().map(|driver| moved(*driver)).collect()
    }

    /// Whether one of them has a provisioner.
    ///
    /// # Errors
    /// Not observable if there is none.
    pub fn has_provisioner(&self) -> Result<(), CheckError> {
        match self.written.provisioner {
            true => Ok(()),
            false => {
                Err(CheckError::NotObservable("csiMigration.provisioner of the profile is false".to_owned()))
            }
        }
    }

    /// Installs the drivers on the cluster where they are missing, and waits until the kubelets know them.
    ///
    /// # Errors
    /// Not observable if the cluster has fewer than two workers; a violation if the drivers do not start.
    pub async fn on_a_cluster(&'a self) -> Result<CsiCluster<'a>, CheckError> {
        let cx = self.cx;
        let machines = cx.session().machines();
        let of = |role: Role| machines.iter().filter(move |machine| machine.role == role);
        let placed = |node: &str, zone: &str| Placed { node: node.to_owned(), zone: zone.to_owned() };
        let workers: Vec<Placed> =
            of(Role::Worker).zip(ZONES).map(|(machine, zone)| placed(&machine.name, zone)).collect();
        let Some(plane) = of(Role::ControlPlane).next().filter(|_| workers.len() == ZONES.len()) else {
            let why = "the cluster has fewer than two workers, so there cannot be two zones with the drivers and one without";
            return Err(CheckError::NotObservable(why.to_owned()));
        };
        let plane = placed(&plane.name, ZONE_OF_PLANE);
        let documents = self.documents()?;
        let namespace = cx.namespace().await?;
        cx.service_account_made(&namespace).await?;
        let applier = Applier::new(cx.client().clone());
        let cluster = CsiCluster { csi: self, applier, namespace, workers, plane };
        // Drivers learn their location from what a CCM writes.
        for place in cluster.workers.iter().chain([&cluster.plane]) {
            cluster.labels(place).await?;
        }
        cluster.applies(&documents).await?;
        cluster.drivers_are_up().await?;
        Ok(cluster)
    }

    /// The manifests with all placeholders filled in.
    fn documents(&self) -> Result<Vec<Value>, CheckError> {
        let state = self.cx.session().state();
        let values = BTreeMap::from([("IMAGE".to_owned(), state.ccm_image.clone())]);
        let mut variables = self.written.environment.clone();
        if let Some((host, port)) = &state.cluster.api_server_for_pods {
            variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), host.clone());
            variables.insert("KUBERNETES_SERVICE_PORT".to_owned(), port.to_string());
        }
        let mut all = documents_in(&self.written.manifests)?;
        for document in &mut all {
            substitute(document, &values);
            let key = key_of(document);
            let ours = [&self.written.node_workload, &self.written.controller_workload].contains(&&key.name);
            if ours {
                with_variables(document, &variables);
            }
        }
        Ok(all)
    }

    /// Whether a CSINode contains all drivers.
    fn lacks(&self, csi_node: &Value) -> Vec<CsiDriver> {
        let there: BTreeSet<&str> = csi_node["spec"]["drivers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|driver| driver["name"].as_str())
            .collect();
        self.written.drivers.iter().copied().filter(|driver| !there.contains(driver.as_str())).collect()
    }
}

impl CsiCluster<'_> {
    pub(super) fn cx(&self) -> &CheckCx {
        self.csi.cx
    }

    async fn labels(&self, place: &Placed) -> Result<(), CheckError> {
        let patch = json!({"metadata": {"labels": {ZONE: place.zone}}}).to_string().into_bytes();
        let request = http::Request::patch(format!("/api/v1/nodes/{}", place.node))
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(patch)
            .map_err(kube::Error::HttpError)?;
        let labelled = async { Ok(self.cx().client().request::<Value>(request).await?) };
        self.cx().session().unless_interrupted(labelled).await.map(drop)
    }

    pub(super) async fn applies(&self, documents: &[Value]) -> Result<(), CheckError> {
        apply(self.cx(), &self.applier, documents).await
    }

    /// Waits until each worker's kubelet knows each driver, and the drivers' controllers run.
    async fn drivers_are_up(&self) -> Result<(), CheckError> {
        let Written { controller_workload, .. } = self.csi.written;
        let up = async |seen: &mut String| {
            for worker in &self.workers {
                let node =
                    read(self.cx(), &format!("/apis/storage.k8s.io/v1/csinodes/{}", worker.node)).await?;
                let lacking = self.csi.lacks(&node);
                if !lacking.is_empty() {
                    let names: Vec<&str> = lacking.iter().map(|driver| driver.as_str()).collect();
                    *seen = format!("the kubelet of {} has no {}", worker.node, names.join(", "));
                    return Ok(None);
                }
            }
            let pods = self.cx().session().world().pods.all();
            let ours = pods.iter().filter(|pod| {
                pod.metadata.name.as_ref().is_some_and(|name| name.starts_with(controller_workload.as_str()))
            });
            let running: Vec<bool> = ours
                .map(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"))
                .collect();
            let up = running.iter().filter(|runs| **runs).count();
            *seen = format!("{up} of {} Pods of {controller_workload} run", running.len());
            Ok::<_, ReadError>(running.contains(&true).then_some(()))
        };
        let waited = async { Ok(poll("the drivers are installed", UP, AGAIN, up).await) };
        let waited = self.cx().session().unless_interrupted(waited).await?;
        waited.map_err(|error| {
            let promise = "drivers run on every worker and register with its kubelet";
            self.csi.violation(promise, "every driver in the CSINode of every worker", error.text)
        })
    }

    /// How long a controller or a scheduler may take: twice B-WATCH, as one of them waits for another.
    pub fn limit(&self) -> Duration {
        2 * self.cx().limits().watch()
    }

    /// The drivers whose volumes are attached, according to their CSIDriver.
    ///
    /// # Errors
    /// Not observable if there is none; or the API server does not answer.
    pub async fn attached(&self) -> Result<Vec<Moved>, CheckError> {
        let mut all = Vec::new();
        for moved in self.csi.moved() {
            let driver =
                read(self.cx(), &format!("/apis/storage.k8s.io/v1/csidrivers/{}", moved.driver)).await?;
            if driver["spec"]["attachRequired"] != false {
                all.push(moved);
            }
        }
        match all.is_empty() {
            true => Err(CheckError::NotObservable("none of the drivers attaches volumes".to_owned())),
            false => Ok(all),
        }
    }

    /// The labels of a Node.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn labels_of(&self, node: &str) -> Result<BTreeMap<String, String>, CheckError> {
        let node = read(self.cx(), &format!("/api/v1/nodes/{node}")).await?;
        let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
        Ok(labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect())
    }

    /// The drivers that the kubelet of a Node knows.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn drivers_of(&self, node: &str) -> Result<Vec<String>, CheckError> {
        let node = read(self.cx(), &format!("/apis/storage.k8s.io/v1/csinodes/{node}")).await?;
        let drivers = node["spec"]["drivers"].as_array().into_iter().flatten();
        Ok(drivers.filter_map(|driver| driver["name"].as_str().map(str::to_owned)).collect())
    }

    /// The start times of a Node's kubelet and of the kube-controller-manager processes.
    ///
    /// # Errors
    /// The API server, or the kubelet, does not answer.
    pub async fn processes(&self, node: &str) -> Result<BTreeMap<String, String>, CheckError> {
        let path = format!("/api/v1/nodes/{node}/proxy/metrics");
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let text = async { Ok(self.cx().client().request_text(request).await?) };
        let text = self.cx().session().unless_interrupted(text).await?;
        let started = text.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
        let started = started.ok_or_else(|| {
            CheckError::Error(format!("the kubelet of {node} does not report its start time"))
        })?;
        let mut all = BTreeMap::from([(format!("kubelet of {node}"), started.to_owned())]);
        for pod in self.cx().session().world().pods.all() {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            if !name.starts_with("kube-controller-manager-") {
                continue;
            }
            let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
            let ids: Vec<&str> =
                statuses.into_iter().flatten().filter_map(|one| one.container_id.as_deref()).collect();
            all.insert(name.to_owned(), ids.join(", "));
        }
        Ok(all)
    }

    /// Waits until an object is as expected; `judge` returns what it is otherwise.
    ///
    /// # Errors
    /// It is not as expected in time; an error if it could not be read at the end.
    pub async fn sees<T>(
        &self,
        (promise, expected): (&str, &str),
        limit: Duration,
        path: &str,
        judge: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, CheckError> {
        let mut is_read = true;
        let look = async |seen: &mut String| {
            let read = read(self.cx(), path).await;
            is_read = read.is_ok();
            match judge(&read?) {
                Ok(found) => Ok(Some(found)),
                Err(other) => {
                    *seen = other;
                    Ok::<_, ReadError>(None)
                }
            }
        };
        let waited = async { Ok(poll(promise, limit, AGAIN, look).await) };
        let waited = self.cx().session().unless_interrupted(waited).await?;
        match waited {
            Ok(found) => Ok(found),
            Err(error) if !is_read => Err(CheckError::Error(error.text)),
            Err(error) => Err(self.csi.violation(promise, expected, self.explained(error.text).await)),
        }
    }

    /// Verifies that an object stays as expected for this time.
    ///
    /// # Errors
    /// The first moment when it was not; or it could not be read, so that the result is unknown.
    pub async fn keeps(
        &self,
        (promise, expected): (&str, &str),
        window: Duration,
        path: &str,
        judge: impl Fn(&Value) -> Result<(), String>,
    ) -> Result<(), CheckError> {
        let promise = Promise {
            text: promise.to_owned(),
            subject: Some(self.csi.subject()),
            expected: expected.to_owned(),
            span: Span::Throughout(window),
        };
        let mut judged = Judged::new(async || read(self.cx(), path).await, judge);
        self.cx().session().unless_interrupted(self.cx().probe().wait(&promise, &mut judged)).await
    }

    /// What was observed, with the warnings in the check's namespace.
    pub(super) async fn explained(&self, seen: String) -> String {
        let events = read(self.cx(), &format!("/api/v1/namespaces/{}/events", self.namespace)).await;
        let mut warned: Vec<String> = events.iter().flat_map(warnings).collect();
        warned.dedup();
        warned.truncate(3);
        if warned.is_empty() { seen } else { format!("{seen}; Events: {}", warned.join("; ")) }
    }
}

/// The messages of warning Events.
pub(super) fn warnings(events: &Value) -> Vec<String> {
    let items = events["items"].as_array().into_iter().flatten();
    let warnings = items.filter(|event| event["type"] == "Warning");
    warnings
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        })
        .collect()
}

/// The state of a Pod, for a failure.
pub(super) fn shown(pod: Option<&k8s_openapi::api::core::v1::Pod>) -> String {
    pod.map_or_else(|| "no such Pod".to_owned(), Observed::observed)
}
