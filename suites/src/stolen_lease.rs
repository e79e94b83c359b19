//! Taking a Lease away from its holder: an API server that refuses renewals, seen from the leader, on any cluster.

use harness::ccm::LeaseKey;
use harness::check::Stop;
use harness::cx::CheckCx;
use harness::probe::pause;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Identity the Lease is held under while it is stolen.
pub(crate) const THIEF: &str = "ccm-conformance-thief";

/// Holds a Lease and renews it until let go or dropped.
pub(crate) struct StolenLease {
    api: Api<Lease>,
    name: String,
    renewal: JoinHandle<()>,
}

impl Drop for StolenLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

fn patch() -> serde_json::Value {
    json!({"spec": {"holderIdentity": THIEF, "renewTime": MicroTime(Timestamp::now())}})
}

impl StolenLease {
    /// Takes the Lease over at once and renews it every half second.
    pub(crate) async fn take(cx: &CheckCx, key: &LeaseKey) -> Result<StolenLease, Stop> {
        let api: Api<Lease> = Api::namespaced(cx.client().clone(), &key.namespace);
        api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch())).await?;
        let (renewed, name) = (api.clone(), key.name.clone());
        let renewal = tokio::spawn(async move {
            loop {
                pause(Duration::from_millis(500)).await;
                if let Err(error) =
                    renewed.patch(&name, &PatchParams::default(), &Patch::Merge(&patch())).await
                {
                    tracing::debug!(%error, "the stolen Lease was not renewed");
                }
            }
        });
        Ok(StolenLease { api, name: key.name.clone(), renewal })
    }

    /// Stops renewing and gives the Lease up, as a holder does that releases it.
    pub(crate) async fn let_go(self) -> Result<(), Stop> {
        self.renewal.abort();
        let released = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&released)).await?;
        Ok(())
    }
}
