//! Reports of a Pod's worker to the API server: the status, Events, and that the Pod is gone.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::Value;

use super::note::Slot;
use super::status::{self, Phase, Restarts, Shown, Snapshot};
use super::worker::Worker;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::writing;

impl Worker {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let shown = |slot: &Slot| Shown {
            name: slot.container.name.clone(),
            image: slot.container.image.clone().unwrap_or_default(),
            phase: slot.phase.clone(),
            last: slot.last.clone(),
            restarts: slot.restarts,
            started: slot.started,
            ready: if slot.init {
                matches!(&slot.phase, Phase::Ended(ended) if ended.code == 0)
            } else {
                slot.ready
            },
        };
        Snapshot {
            init: self.slots.iter().filter(|slot| slot.init).map(shown).collect(),
            containers: self.slots.iter().filter(|slot| !slot.init).map(shown).collect(),
            host_ips: self.setup.host_ips.clone(),
            pod_ips: self.setup.pod_ips.clone(),
            start: self.since,
            restarts: Restarts::of(&self.pod),
        }
    }

    /// Posts the status if it differs from the last one that was posted.
    pub(super) async fn post(&mut self) -> Result<(), kube::Error> {
        let minor = self.shared.fleet.kubelet(&self.node).minor;
        let status = status::status(&self.pod, &self.snapshot(), minor, Timestamp::now());
        if self.posted.as_ref().is_some_and(|posted| same_but_times(posted, &status))
            && !self.was_overwritten(&status)
        {
            return Ok(());
        }
        let Some(client) = self.shared.fleet.client(&self.node) else { return Ok(()) };
        let api = writing::api_in::<Pod>(&client, &self.key.namespace);
        let uid = Some(self.uid.clone());
        match writing::patch_status(&api, &self.shared.world.pods, &self.key.name, uid, status.clone()).await
        {
            Err(error) if writing::is_not_found(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.posted = Some(status);
                Ok(())
            }
        }
    }

    /// Whether another component has changed the Pod's readiness since, as the node controller does for
    /// silent kubelets.
    fn was_overwritten(&self, status: &Value) -> bool {
        let known = self.pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready =
            known.and_then(|all| all.iter().find(|one| one.type_ == "Ready")).map(|one| one.status.as_str());
        let wanted =
            status["conditions"].as_array().and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
        wanted.and_then(|one| one["status"].as_str()) != ready
    }

    pub(super) async fn remove(&mut self) -> Result<(), kube::Error> {
        let Some(client) = self.shared.fleet.client(&self.node) else { return Ok(()) };
        let api = writing::api_in::<Pod>(&client, &self.key.namespace);
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        writing::delete(&api, &self.shared.world.pods, self.pod.as_ref(), at_once).await
    }

    pub(crate) fn tell(&self, weight: Weight, reason: &str, message: String) {
        if !self.shared.fleet.speaks(&self.node) {
            return;
        }
        let Some(client) = self.shared.fleet.client(&self.node) else { return };
        let source = Source { component: "kubelet", host: Some(&self.node) };
        self.shared.world.recorder.tell(&client, source, self.pod.as_ref(), weight, reason, message);
    }

    /// Sends an Event for a lasting state only when the state begins.
    pub(crate) fn say_once(&mut self, weight: Weight, reason: &str, message: String) {
        let said = format!("{reason} {message}");
        if self.said.as_ref() != Some(&said) {
            self.said = Some(said);
            self.tell(weight, reason, message);
        }
    }
}

/// Whether two statuses are equal apart from the times of their conditions.
fn same_but_times(one: &Value, other: &Value) -> bool {
    let without_times = |status: &Value| {
        let mut status = status.clone();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            if let Some(condition) = condition.as_object_mut() {
                condition.remove("lastTransitionTime");
            }
        }
        status
    };
    without_times(one) == without_times(other)
}
