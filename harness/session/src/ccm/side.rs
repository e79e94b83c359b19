//! One cluster for the CCM's handle: the one that it serves, or the one of its Pods.

use super::deploy::{Applier, CcmError, pods_gone, pods_of, programs_ended};
use super::manifests::ObjectKey;
use crate::k8s::ClusterCaches;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt};
use std::sync::Arc;
use std::time::Duration;

/// How long Pods may take to end before they are deleted without a grace period, and after that.
const PODS_GO: Duration = Duration::from_secs(30);

/// One cluster for the CCM's handle.
pub struct Side {
    pub(super) client: Client,
    pub(super) world: Arc<ClusterCaches>,
    pub(super) applier: Applier,
}

impl Side {
    /// The cluster of that client, observed by `world`.
    pub fn new(client: Client, world: Arc<ClusterCaches>) -> Side {
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

    /// Deletes the Pods of workloads, and waits until they are gone.
    pub(super) async fn evict(&self, workloads: &[ObjectKey]) -> Result<(), CcmError> {
        self.delete_pods(workloads, 1).await;
        // A kubelet reports at once that a Pod's programs have ended, but with 1.20 up to ten seconds later that the Pod
        // may be removed. One that is starting a Pod at that moment may forget to stop it; when the object is gone it
        // stops the rest.
        let _ = programs_ended(&self.world, workloads, PODS_GO).await;
        self.delete_pods(workloads, 0).await;
        pods_gone(&self.world, workloads, PODS_GO).await.map_err(|error| CcmError::NotReady(error.text))
    }

    async fn delete_pods(&self, workloads: &[ObjectKey], grace_s: u32) {
        for pod in workloads.iter().flat_map(|workload| pods_of(&self.world, workload)) {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            // Its controller may have removed it already; only its end matters, and that is waited for.
            let _ = api.delete(&pod.name_any(), &DeleteParams::default().grace_period(grace_s)).await;
        }
    }
}
