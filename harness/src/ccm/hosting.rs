//! A CCM whose Pods run on another cluster than the one it serves.

use super::deal::dealt;
use super::deploy::CcmError;
use super::kubeconfig::{AccountKey, KUBECONFIG, ServerAddress, kubeconfig_of};
use super::manifests::{key_of, mentions, pod_spec, pod_spec_mut, substitute};
use super::render::Rendered;
use super::side::Side;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the Pods of a hosted CCM are: a management cluster.
pub struct Hosting {
    pub(super) side: Side,
    /// The cluster that it serves, as its Pods reach it.
    served_at: ServerAddress,
}

impl Hosting {
    /// On that cluster, from which the served one is reached at `served_at`.
    pub fn new(side: Side, served_at: ServerAddress) -> Hosting {
        Hosting { side, served_at }
    }

    /// Applies what was rendered where it belongs: on the served cluster first, then, with a kubeconfig for it where its
    /// placeholder stands, on the management cluster. The kubeconfig is for the account that a workload among the documents
    /// names, else for that of `usual`, the workload of the manifests; the Pods themselves run as the latter.
    pub(super) async fn apply(
        &self,
        served: &Side,
        rendered: &Rendered,
        usual: &Value,
    ) -> Result<(), CcmError> {
        let (there, mut here) = dealt(&rendered.documents);
        served.applier.apply(&there).await?;
        let is_workload = |document: &Value| rendered.workloads.contains(&key_of(document));
        let workload = here.iter().find(|document| is_workload(document));
        let account = account_of(workload.unwrap_or(usual));
        if here.iter().any(|document| mentions(document, KUBECONFIG)) {
            let kubeconfig = kubeconfig_of(&served.client, &self.served_at, &account).await?;
            let table = BTreeMap::from([(KUBECONFIG.to_owned(), kubeconfig)]);
            here.iter_mut().for_each(|document| substitute(document, &table));
        }
        if account.name != account_of(usual).name {
            for workload in here.iter_mut().filter(|document| is_workload(document)) {
                pod_spec_mut(workload)["serviceAccountName"] = pod_spec(usual)["serviceAccountName"].clone();
            }
        }
        self.side.applier.apply(&here).await
    }

    /// Removes documents from where [`Hosting::apply`] has put them.
    pub(super) async fn remove(&self, served: &Side, documents: &[Value]) -> Result<(), CcmError> {
        let (there, here) = dealt(documents);
        self.side.applier.remove(&here).await?;
        served.applier.remove(&there).await
    }
}

/// The service account of a workload's Pods.
fn account_of(workload: &Value) -> AccountKey {
    let name = pod_spec(workload)["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    let namespace = workload["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    AccountKey { namespace, name }
}
