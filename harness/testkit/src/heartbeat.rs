//! Heartbeats of synthetic Nodes: without them the controller manager considers a Node unresponsive.

use super::CheckCx;
use super::undo_steps::{Undo, gone};
use harness_core::check::CheckError;
use harness_core::probe::pause;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;

/// Namespace of the kubelets' heartbeat Leases.
const HEARTBEATS: &str = "kube-node-lease";
/// A kubelet renews every 10 s; more often does no harm.
const PERIOD: Duration = Duration::from_secs(8);

impl CheckCx {
    /// Renews the Node's heartbeat Lease until stopped or the check ends.
    pub(super) async fn keep_heartbeat(&self, name: &str) -> Result<(), CheckError> {
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
        let undo = Undo::Heartbeat(name.to_owned());
        if !self.is_to_be_undone(&undo) {
            self.on_end(undo);
        }
        match api.create(&PostParams::default(), &lease).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
        let held = name.to_owned();
        let task = tokio::spawn(async move {
            loop {
                let patch = json!({"spec": {"renewTime": MicroTime(Timestamp::now())}});
                if let Err(error) = api.patch(&held, &PatchParams::default(), &Patch::Merge(&patch)).await {
                    tracing::debug!(%error, node = held, "the heartbeat was not renewed");
                }
                pause(PERIOD).await;
            }
        });
        self.stop_heartbeat(name);
        let mut heartbeats = self.heartbeats.lock().expect("no holder of this lock panics");
        heartbeats.insert(name.to_owned(), task.abort_handle());
        Ok(())
    }

    pub(super) fn stop_heartbeat(&self, name: &str) {
        let task = self.heartbeats.lock().expect("no holder of this lock panics").remove(name);
        if let Some(task) = task {
            task.abort();
        }
    }

    pub(super) async fn undo_heartbeat(&self, name: &str) -> Result<(), String> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), HEARTBEATS);
        gone(async || api.delete(name, &DeleteParams::default()).await).await
    }
}
