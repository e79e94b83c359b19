//! The CCM as a check disturbs it: who is active, kill, stop, start.

use super::nodes::NodePlan;
use super::{CheckCx, Undo};
use crate::ccm::Form;
use crate::check::{Stop, Verdict};
use crate::probe::{Observed, ReadError, Seen, judge};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use std::sync::Arc;

/// The end of a replica's process, as its kubelet reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When, to the second; `None` when the kubelet does not say.
    pub at: Option<Timestamp>,
}

impl Observed for Option<End> {
    fn observed(&self) -> String {
        match self {
            None => "it runs".to_owned(),
            Some(End { at: Some(at) }) => format!("it ended at {at}"),
            Some(End { at: None }) => "it ended".to_owned(),
        }
    }
}

impl CheckCx {
    /// The CCM's Lease as it is now.
    pub fn find_lease(&self) -> Option<Arc<Lease>> {
        self.session.ccm().find_lease()
    }

    /// Who holds the Lease, by the identity it was taken under.
    pub fn lease_holder(&self) -> Option<String> {
        self.find_lease()?.spec.as_ref()?.holder_identity.clone().filter(|holder| !holder.is_empty())
    }

    /// `spec.leaseTransitions`; 0 where absent.
    pub fn lease_transitions(&self) -> i32 {
        self.find_lease().and_then(|l| l.spec.as_ref()?.lease_transitions).unwrap_or(0)
    }

    /// The name of the replica that does the work now, found by giving it some: a fresh Node is initialised, and the
    /// credential that asks the cloud about it is the active replica's.
    ///
    /// # Errors
    /// [`Stop::Unmet`] when no replica asks in B-WATCH.
    pub async fn active_replica(&self) -> Result<String, Stop> {
        let instance = self.instance(&format!("who-{}", self.session.next_suffix()));
        self.put_instance(&instance).await?;
        self.create_node(NodePlan::new(&instance.name)).await?;
        let asks = || Ok(self.journal_of_instance(&instance)?.into_iter().find_map(|entry| entry.credential));
        let asked = judge("a replica asks the cloud about a new Node", |who: &Option<String>| match who {
            Some(who) => Seen::Yes(who.clone()),
            None => Seen::NotYet(String::new()),
        });
        self.eventually("some replica is active", self.limits().watch(), async || asks(), asked).await
    }

    /// The Pods of a replica.
    pub fn pods_of_replica(&self, replica: &str) -> Vec<Arc<Pod>> {
        self.session.ccm().pods_of_replica(replica)
    }

    /// How often the containers of a replica have been restarted, over its Pods that are there now.
    pub fn restarts_of(&self, replica: &str) -> i32 {
        self.pods_of_replica(replica).iter().flat_map(|pod| restarts(pod)).sum()
    }

    /// Kills the replica's process as a crash would: SIGKILL, no chance to say goodbye. It stays down until the CCM is
    /// brought back: a kubelet restarts a container at once, and the same replica might win the Lease again.
    ///
    /// # Errors
    /// When its container is not there or cannot be killed.
    pub(super) async fn kill(&self, replica: &str) -> Result<(), Stop> {
        let pod = self.pods_of_replica(replica).into_iter().next();
        let pod = pod.ok_or_else(|| Stop::Error(format!("replica {replica} has no Pod to kill")))?;
        let node = pod.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default();
        let id = container_id(&pod)
            .ok_or_else(|| Stop::Error(format!("Pod {} has no running container to kill", pod.name_any())))?;
        self.session.kill_container(&node, &id).await.map_err(Stop::Error)?;
        Ok(self.session.ccm().hold_down(replica).await?)
    }

    /// Says that this check makes the replica end: its Pod is replaced when the check ends. A Pod that has crashed
    /// before is restarted later and later, and the next check must not wait for that.
    pub fn disturbs(&self, replica: &str) {
        self.on_end(Undo::Ccm { ended: replica.to_owned() });
    }

    /// The end of the replica's process, if it has ended since it had been restarted `restarts` times, come back or not.
    pub fn end_of(&self, replica: &str, restarts: i32) -> Option<End> {
        let pods = self.pods_of_replica(replica);
        let statuses = pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        let ended = statuses.flatten().find(|s| {
            s.restart_count > restarts || s.state.as_ref().is_some_and(|state| state.running.is_none())
        })?;
        let terminated = [&ended.state, &ended.last_state].into_iter().flatten();
        let terminated = terminated.filter_map(|state| state.terminated.as_ref()).next();
        Some(End { at: terminated.and_then(|t| t.finished_at.as_ref()).map(|time| time.0) })
    }

    /// Whether the replica's process runs again after an end, started anew since it had been restarted `restarts` times.
    pub fn is_back(&self, replica: &str, restarts: i32) -> bool {
        let pods = self.pods_of_replica(replica);
        let statuses = pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.flatten().any(|s| {
            s.restart_count > restarts && s.state.as_ref().is_some_and(|state| state.running.is_some())
        })
    }

    /// Takes the CCM away, if it is there.
    ///
    /// # Errors
    /// What could not be removed.
    pub async fn withdraw_ccm(&self) -> Verdict {
        self.session.ensure_ccm(Form::Absent).await
    }

    /// Deploys every replica and waits until one leads.
    ///
    /// # Errors
    /// Why the CCM does not come up.
    pub async fn deploy_ccm(&self) -> Verdict {
        self.session.ensure_ccm(Form::Replicas).await
    }

    /// Starts all replicas again, with a fresh Pod for the one that was made to end. Waits until one leads where what is
    /// undone next needs it; else the next check does, and after the last one nobody has to.
    pub(super) async fn undo_ccm(&self, ended: Option<&str>, needed: bool) -> Result<(), String> {
        let ccm = self.session.ccm();
        if !ccm.exists() {
            return Ok(());
        }
        let text = |error: crate::ccm::CcmError| crate::check::chain(&error);
        self.session.note_returning().map_err(|error| crate::check::chain(&error))?;
        for pod in ended.into_iter().flat_map(|replica| self.pods_of_replica(replica)) {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            super::nodes::gone(api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await)?;
            self.caught_up(|| self.is_replaced(&pod))
                .await
                .map_err(|_| format!("Pod {} stays", pod.name_any()))?;
        }
        ccm.start().await.map_err(text)?;
        if needed {
            ccm.leading(Form::Replicas, self.limits().start()).await.map_err(text)?;
            self.session.note_form(Form::Replicas).map_err(|error| crate::check::chain(&error))?;
        }
        Ok(())
    }

    fn is_replaced(&self, pod: &Pod) -> bool {
        let now = self.session.world().pods.find(&pod.namespace().unwrap_or_default(), &pod.name_any());
        now.is_none_or(|now| {
            now.metadata.deletion_timestamp.is_some() || now.metadata.uid != pod.metadata.uid
        })
    }

    /// A read for waits on the Lease.
    ///
    /// # Errors
    /// Never; the signature is what a wait takes.
    pub async fn read_lease(&self) -> Result<Option<Arc<Lease>>, ReadError> {
        Ok(self.find_lease())
    }
}

fn restarts(pod: &Pod) -> Vec<i32> {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|s| s.restart_count).collect()
}

/// The running container's id as the node's container runtime knows it, without the runtime's name.
fn container_id(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let running = statuses.iter().find(|s| s.state.as_ref().is_some_and(|state| state.running.is_some()))?;
    running.container_id.as_deref()?.split_once("://").map(|(_, id)| id.to_owned())
}
