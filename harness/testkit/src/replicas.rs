//! Operations of a check on the CCM's replicas: find the active one, kill, remove, restore.

use super::undo_steps::{Undo, gone};
use super::{Calls, CheckCx, Subject, load_balancer, machine};
use harness_clouds::Entry;
use harness_clusters::ContainerOp;
use harness_config::BackendKind;
use harness_core::check::{Capability, CheckError, Facility, SubjectName, Verdict};
use harness_core::events::Payload;
use harness_core::probe::{Matcher, Observation, Observed, ReadError, ReadSource, holds, matcher, poll};
use harness_session::ccm::{Form, Starts};
use harness_session::suffix;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use std::sync::Arc;
use std::time::Duration;

/// A replica of the CCM; its ends count from when the check first used it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let leader: Replica<'_> = cx.active_replica().await?;
/// leader.will_end();
/// leader.terminate().await?;
/// leader.becomes(ends()).within(cx.limits().kubelet_report()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Replica<'a> {
    pub(super) cx: &'a CheckCx,
    name: String,
    /// How often its containers had been restarted by then.
    restarts: i32,
}

/// A replica's Pods.
#[derive(Clone, Debug)]
pub struct Process {
    pods: Vec<Arc<Pod>>,
    restarts_before: i32,
}

/// The end of a replica's process, as its kubelet reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When, to the second; `None` if the kubelet does not report it.
    pub at: Option<Timestamp>,
}

impl Process {
    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref()).flatten()
    }

    fn runs(&self) -> bool {
        let phase = |pod: &Arc<Pod>| pod.status.as_ref().and_then(|s| s.phase.clone());
        self.pods.iter().any(|pod| phase(pod).as_deref() == Some("Running"))
    }

    /// Its end, if its process has ended since, even if it was restarted.
    fn end(&self) -> Option<End> {
        let ended = self.containers().find(|s| {
            s.restart_count > self.restarts_before
                || s.state.as_ref().is_some_and(|state| state.running.is_none())
        })?;
        let terminated = [&ended.state, &ended.last_state].into_iter().flatten();
        let terminated = terminated.filter_map(|state| state.terminated.as_ref()).next();
        Some(End { at: terminated.and_then(|t| t.finished_at.as_ref()).map(|time| time.0) })
    }

    fn is_back(&self) -> bool {
        self.containers().any(|s| {
            s.restart_count > self.restarts_before
                && s.state.as_ref().is_some_and(|state| state.running.is_some())
        })
    }
}

impl Observed for Process {
    fn observed(&self) -> String {
        let end = match self.end() {
            None => String::new(),
            Some(End { at: Some(at) }) => format!(", ended at {at}"),
            Some(End { at: None }) => ", ended".to_owned(),
        };
        format!("Pods {}{end}", self.pods.observed())
    }
}

/// Its process ended; returns the end.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, leader: &Replica<'_>) -> Verdict {
/// leader.kill().await?;
/// let end = leader.becomes(ends()).within(cx.limits().kubelet_report()).await?;
/// if let Some(at) = end.at {
///     cx.record("ended_at", at);
/// }
/// # Ok(()) }
/// ```
pub fn ends() -> Matcher<Process, End> {
    matcher("ends", |process: &Process| match process.end() {
        Some(end) => Observation::Matched(end),
        None => Observation::Pending(String::new()),
    })
    .expecting("its process ended")
}

/// Its process has not ended.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, leader: &Replica<'_>) -> Verdict {
/// let outage = cx.api_server_is_away().await?;
/// pause(cx.limits().lease().renew_deadline / 4).await;
/// outage.restore().await?;
/// leader.keeps(stays_up()).when("after a short outage of the API server").await
/// # }
/// ```
pub fn stays_up() -> Matcher<Process> {
    holds("stays up", |process: &Process| process.end().is_none()).expecting("its process not ended")
}

/// Its process runs again after an end.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, leader: &Replica<'_>) -> Verdict {
/// leader.becomes(ends()).within(cx.limits().kubelet_report()).await?;
/// leader.becomes(is_back()).within(cx.limits().start()).when("as a standby").await
/// # }
/// ```
pub fn is_back() -> Matcher<Process> {
    holds("is back", Process::is_back).expecting("its process restarted and running")
}

/// Its process runs.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// for replica in cx.replicas() {
///     replica.becomes(runs()).within(cx.limits().start()).await?;
/// }
/// # Ok(()) }
/// ```
pub fn runs() -> Matcher<Process> {
    holds("runs", Process::runs).expecting("a Pod that is Running")
}

impl<'a> Replica<'a> {
    /// Its name, which is also that of its credential.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The calls it makes to the cloud.
    pub fn calls(&self) -> Calls<'a> {
        let name = self.name.clone();
        let about = SubjectName { kind: "replica", name: name.clone(), uid: None };
        Calls::about(self.cx, about, move |call| call.credential.as_deref() == Some(&name))
    }

    /// Declares that the check disturbs it: if it exits during or shortly after the check, only this check judges that.
    pub fn is_at_risk(&self) {
        self.disturbed();
    }

    /// Declares that the check makes it exit: its Pod is replaced when the check ends. The kubelet restarts a Pod that
    /// has crashed before with a growing back-off, and the next check must not wait for that.
    pub fn will_end(&self) {
        self.disturbed();
        let undo = Undo::Ccm { ended: self.name.clone() };
        if !self.cx.is_to_be_undone(&undo) {
            self.cx.on_end(undo);
        }
    }

    /// Restores it with a new Pod, whatever its state (a container that has ended before is restarted with a growing
    /// back-off), and waits until the CCM is complete. From then on, its exits are its own.
    ///
    /// # Errors
    /// Why it does not come back.
    pub async fn returns(&self) -> Verdict {
        self.disturbed();
        self.cx.undo_ccm(Some(&self.name), false).await.map_err(CheckError::Error)?;
        self.cx.deploy_ccm().await
    }

    /// Ends it as an upgrade would: SIGTERM, and the grace period of its Pod. It stays down until the CCM is restored,
    /// see [`Replica::will_end`].
    ///
    /// # Errors
    /// What the API server refused.
    pub async fn terminate(&self) -> Result<(), CheckError> {
        Ok(self.cx.session.ccm().hold_down(&self.name).await?)
    }

    /// Its Pods.
    pub(super) fn pods(&self) -> Vec<Arc<Pod>> {
        self.cx.session.ccm().pods_of_replica(&self.name)
    }

    /// Its node, and its container's id.
    pub(super) fn container(&self) -> Result<(String, String), CheckError> {
        let name = &self.name;
        let pod = self.pods().into_iter().next();
        let pod = pod.ok_or_else(|| CheckError::Error(format!("replica {name} has no Pod")))?;
        let node = pod.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default();
        let none = || CheckError::Error(format!("Pod {} has no running container", pod.name_any()));
        Ok((node, container_id(&pod).ok_or_else(none)?))
    }

    /// Tells the run that this check is the cause of its end.
    fn disturbed(&self) {
        let events = self.cx.session.events().of_check(self.cx.id().as_str());
        events.emit(Payload::ReplicaDisturbed { replica: self.name.clone() });
    }

    /// Kills its process as a crash would: SIGKILL, without a chance to clean up. It stays down until the CCM is
    /// restored: otherwise the kubelet would restart the container at once, and the same replica might win the Lease
    /// again.
    ///
    /// # Errors
    /// What could not be done.
    pub async fn kill(&self) -> Result<(), CheckError> {
        let (name, session) = (&self.name, &self.cx.session);
        let (node, id) = self.container()?;
        let pods = self.pods();
        self.disturbed();
        session.signal_container(&node, &id, ContainerOp::Kill).await.map_err(CheckError::Error)?;
        session.ccm().hold_down(name).await?;
        // The kubelet may have been faster. It has then started the first process of a new container, which ignores
        // SIGTERM until it has installed a handler and would run for the whole grace period of its Pod.
        for pod in &pods {
            self.cx.removed_at_once(pod).await.map_err(CheckError::Error)?;
        }
        Ok(())
    }
}

impl Subject for Replica<'_> {
    type Snapshot = Process;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "replica", name: self.name.clone(), uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<Process, ReadError> {
        self.cx.session.ccm_site().world().pods.current()?;
        let mut pods = self.cx.session.ccm().pods_of_replica(&self.name);
        if reach == ReadSource::Origin {
            for pod in &mut pods {
                let api: Api<Pod> =
                    Api::namespaced(self.cx.pods_client(), &pod.namespace().unwrap_or_default());
                if let Some(now) = api.get_opt(&pod.name_any()).await? {
                    *pod = Arc::new(now);
                }
            }
        }
        Ok(Process { pods, restarts_before: self.restarts })
    }

    fn concerns(&self, call: &Entry) -> bool {
        call.credential.as_deref() == Some(&self.name)
    }
}

/// Matches calls of which one has the credential of a replica; returns the replica's name.
fn identifies() -> Matcher<Vec<Entry>, String> {
    matcher("identify a replica", |calls: &Vec<Entry>| {
        match calls.iter().find_map(|call| call.credential.clone()) {
            Some(who) => Observation::Matched(who),
            None => Observation::Pending(String::new()),
        }
    })
}

impl CheckCx {
    /// Returns a replica by its name.
    pub fn replica(&self, name: &str) -> Replica<'_> {
        let process = Process { pods: self.session.ccm().pods_of_replica(name), restarts_before: 0 };
        let restarts = process.containers().map(|s| s.restart_count).sum();
        Replica { cx: self, name: name.to_owned(), restarts }
    }

    /// All deployed replicas.
    pub fn replicas(&self) -> Vec<Replica<'_>> {
        self.session.ccm().replicas().iter().map(|replica| self.replica(&replica.name)).collect()
    }

    /// The active replica, found by giving it work: a new Node must be initialised, and the active replica's credential
    /// queries the cloud about it. With a CCM that initialises no Nodes, a new Service must be served; whatever the
    /// cloud is asked then, the active replica asks.
    ///
    /// # Errors
    /// [`CheckError::Violation`] when no replica does so within B-WATCH.
    pub async fn active_replica(&self) -> Result<Replica<'_>, CheckError> {
        if !self.declares(Capability::Instances) && self.declares(Capability::LoadBalancer) {
            return self.active_replica_by_service().await;
        }
        let machine = self.machine(machine(&format!("who-{}", suffix(self.session.next_number())))).await?;
        let mark = self.heard().mark()?;
        let node = self.node(machine.node()).await?;
        let asked = identifies().expecting("a replica that queries the cloud about a new Node");
        let who = node.looks().since(mark).becomes(asked).await?;
        Ok(self.replica(&who))
    }

    async fn active_replica_by_service(&self) -> Result<Replica<'_>, CheckError> {
        let name = format!("who-{}", suffix(self.session.next_number()));
        let cloud = self.cloud();
        let mark = cloud.mark_now().await?;
        self.service(load_balancer(&name).port(80)).await?;
        let asked = identifies().expecting("a replica that queries the cloud, as there is a new Service");
        let who = cloud.calls().since(mark).becomes(asked).await?;
        Ok(self.replica(&who))
    }

    /// Removes the CCM, if it is deployed.
    ///
    /// # Errors
    /// What could not be removed.
    pub async fn withdraw_ccm(&self) -> Verdict {
        self.session.ensure_ccm(Form::Absent).await
    }

    /// Deploys all replicas and waits until one leads.
    ///
    /// # Errors
    /// Why the CCM does not start.
    pub async fn deploy_ccm(&self) -> Verdict {
        self.session.ensure_ccm(Form::Replicas).await
    }

    /// Deletes a Pod without a grace period.
    async fn removed_at_once(&self, pod: &Pod) -> Result<(), String> {
        let api: Api<Pod> = Api::namespaced(self.pods_client(), &pod.namespace().unwrap_or_default());
        gone(async || api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await).await
    }

    /// Makes the program of a Pod on its machine's network end before the Pod is deleted. A Pod that is deleted without a
    /// grace period is gone from the API server before its program is gone from the machine, and the program of the next
    /// Pod would find its ports in use. A process that has just started may miss the signal, so it is repeated.
    pub(super) async fn leaves_its_ports(&self, pod: &Pod) {
        let Some(spec) = pod.spec.as_ref().filter(|spec| spec.host_network == Some(true)) else { return };
        let (Some(node), Some(id)) = (&spec.node_name, container_id(pod)) else { return };
        let gets_signals = self.session.facilities().contains(&Facility::ProcessControl)
            && self.session.state().cluster.backend != BackendKind::Embedded;
        if !gets_signals {
            return;
        }
        let ended = async |seen: &mut String| {
            let sent = self.session.signal_container(node, &id, ContainerOp::Terminate).await;
            "it runs".clone_into(seen);
            Ok(sent.is_err().then_some(()))
        };
        let limit = Duration::from_millis(1_500);
        if poll("the end of a replica's process", limit, Duration::from_millis(300), ended).await.is_err() {
            // Then it is removed with its Pod.
            drop(self.session.signal_container(node, &id, ContainerOp::Kill).await);
        }
    }

    /// Starts all replicas again, with a new Pod for the one that was made to exit. Waits until one leads if the next
    /// undo step needs that; otherwise the next check waits, and after the last one nothing has to.
    pub(super) async fn undo_ccm(&self, ended: Option<&str>, needed: bool) -> Result<(), String> {
        let ccm = self.session.ccm();
        if !ccm.exists() {
            return Ok(());
        }
        let text = |error: harness_session::ccm::CcmError| harness_core::check::chain(&error);
        self.session.note_returning().map_err(|error| harness_core::check::chain(&error))?;
        for pod in ended.into_iter().flat_map(|replica| ccm.pods_of_replica(replica)) {
            self.leaves_its_ports(&pod).await;
            self.removed_at_once(&pod).await?;
            self.caught_up(|| self.is_replaced(&pod))
                .await
                .map_err(|_| format!("Pod {} was not removed", pod.name_any()))?;
        }
        ccm.start().await.map_err(text)?;
        if needed {
            let starts = Starts::from_now(&ccm.pods(Form::Replicas));
            self.session.leading(Form::Replicas, starts).await.map_err(text)?;
            self.session.note_form(Form::Replicas).map_err(|error| harness_core::check::chain(&error))?;
        }
        Ok(())
    }

    fn is_replaced(&self, pod: &Pod) -> bool {
        let pods = &self.session.ccm_site().world().pods;
        let now = pods.find(&pod.namespace().unwrap_or_default(), &pod.name_any());
        now.is_none_or(|now| {
            now.metadata.deletion_timestamp.is_some() || now.metadata.uid != pod.metadata.uid
        })
    }
}

/// The running container's id for the node's container runtime, without the runtime's name.
fn container_id(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let running = statuses.iter().find(|s| s.state.as_ref().is_some_and(|state| state.running.is_some()))?;
    running.container_id.as_deref()?.split_once("://").map(|(_, id)| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn process(restarts: i32, state: serde_json::Value, last: serde_json::Value) -> Process {
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Running", "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": restarts,
            "state": state, "lastState": last,
        }]}});
        Process { pods: vec![Arc::new(serde_json::from_value(pod).expect("a Pod"))], restarts_before: 1 }
    }

    #[test]
    fn an_end_is_seen_while_it_is_down_and_after_it_came_back() {
        let up = json!({"running": {"startedAt": "2026-01-01T00:00:09Z"}});
        let down = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:05Z"}});
        let at = "2026-01-01T00:00:05Z".parse().ok();
        let (still, gone, back) =
            (process(1, up.clone(), json!({})), process(1, down.clone(), json!({})), process(2, up, down));
        assert_eq!(ends().matches(&still), Observation::Pending(String::new()));
        assert_eq!(ends().matches(&gone), Observation::Matched(End { at }));
        assert_eq!(ends().matches(&back), Observation::Matched(End { at }));
        assert_eq!(is_back().matches(&back), Observation::Matched(()));
        for other in [&still, &gone] {
            assert_eq!(is_back().matches(other), Observation::when(false));
        }
        assert_eq!(runs().matches(&still), Observation::Matched(()));
        assert_eq!(
            runs().matches(&Process { pods: Vec::new(), restarts_before: 0 }),
            Observation::when(false)
        );
    }
}
