//! A cluster as the CCM's handle needs it: the one it serves, or the one its Pods are on.

use super::deploy::{Applier, CcmError, pods_gone, pods_of, programs_ended};
use super::manifests::ObjectKey;
use crate::k8s::World;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt};
use std::sync::Arc;
use std::time::Duration;

/// How long Pods have to go before they are taken away without asking, and after that.
const PODS_GO: Duration = Duration::from_secs(30);

/// A cluster as the CCM's handle needs it.
pub struct Side {
    pub(super) client: Client,
    pub(super) world: Arc<World>,
    pub(super) applier: Applier,
}

impl Side {
    /// The cluster of that client, of which `world` tells.
    pub fn new(client: Client, world: Arc<World>) -> Side {
        Side { applier: Applier::new(client.clone()), client, world }
    }

    /// Removes the ReplicaSets of Deployments that are gone.
    pub(super) async fn remove_replica_sets(&self, workloads: &[ObjectKey]) -> Result<(), CcmError> {
        for workload in workloads.iter().filter(|workload| workload.kind == "Deployment") {
            let api: Api<ReplicaSet> = Api::namespaced(self.client.clone(), &workload.namespace);
            let failed = |error: kube::Error| CcmError::Remove {
                object: format!("ReplicaSets of {workload}"),
                cause: harness_core::check::chain(&error),
            };
            let owned = |set: &ReplicaSet| {
                set.owner_references().iter().any(|o| o.kind == "Deployment" && o.name == workload.name)
            };
            for set in
                api.list(&ListParams::default()).await.map_err(failed)?.items.iter().filter(|s| owned(s))
            {
                match api.delete(&set.name_any(), &DeleteParams::background()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => return Err(failed(error)),
                    Ok(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Has the Pods of workloads go, and waits for that.
    pub(super) async fn evict(&self, workloads: &[ObjectKey]) -> Result<(), CcmError> {
        self.delete_pods(workloads, 1).await;
        // A kubelet says at once that a Pod's programs have ended, and with 1.20 up to ten seconds later that it may go. One
        // that is told while it starts a Pod may forget to stop it; when the object is gone it stops what is left of it.
        let _ = programs_ended(&self.world, workloads, PODS_GO).await;
        self.delete_pods(workloads, 0).await;
        pods_gone(&self.world, workloads, PODS_GO).await.map_err(|error| CcmError::NotReady(error.text))
    }

    async fn delete_pods(&self, workloads: &[ObjectKey], grace_s: u32) {
        for pod in workloads.iter().flat_map(|workload| pods_of(&self.world, workload)) {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            // Its controller may have removed it already: what counts is that it goes, which is waited for.
            let _ = api.delete(&pod.name_any(), &DeleteParams::default().grace_period(grace_s)).await;
        }
    }
}
