//! A CCM whose Pods run on another cluster than the one that it serves.

use super::deal::dealt;
use super::deploy::CcmError;
use super::kubeconfig::{AccountKey, Given, KUBECONFIG, ServerAddress, kubeconfig_of};
use super::manifests::{key_of, mentions, pod_spec, pod_spec_mut, substitute};
use super::render::{REPLICA_LABEL, Rendered};
use super::side::Side;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Annotation of a hosted CCM's workload: the id of the token in its kubeconfig, which identifies it to the served API
/// server.
pub const TOKEN_ID: &str = "ccm-conformance.io/token-id";

/// The management cluster, which runs the Pods of a hosted CCM.
pub struct Hosting {
    pub(super) side: Side,
    /// The served cluster, with its address for the Pods.
    served_at: ServerAddress,
}

impl Hosting {
    /// Runs Pods on that cluster, from which the served one is reached at `served_at`.
    pub fn new(side: Side, served_at: ServerAddress) -> Hosting {
        Hosting { side, served_at }
    }

    /// Applies rendered objects to the right cluster: first those of the served cluster, then those of the management
    /// cluster, with a kubeconfig in place of its placeholder. Each replica gets its own kubeconfig, for the service
    /// account of its workload, or of `usual`, the workload of the manifests. The Pods themselves run as the latter.
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
        let mut given: BTreeMap<String, Given> = BTreeMap::new();
        for document in here.iter_mut().filter(|document| mentions(document, KUBECONFIG)) {
            let own = match given.entry(replica_of(document)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(first) => {
                    first.insert(kubeconfig_of(&served.client, &self.served_at, &account).await?)
                }
            };
            substitute(document, &BTreeMap::from([(KUBECONFIG.to_owned(), own.kubeconfig.clone())]));
        }
        for workload in here.iter_mut().filter(|document| is_workload(document)) {
            // Not on the Pods: they would be replaced for a new token.
            if let Some(own) = given.get(&replica_of(workload)) {
                workload["metadata"]["annotations"][TOKEN_ID] = json!(own.token_id);
            }
        }
        if account.name != account_of(usual).name {
            for workload in here.iter_mut().filter(|document| is_workload(document)) {
                pod_spec_mut(workload)["serviceAccountName"] = pod_spec(usual)["serviceAccountName"].clone();
            }
        }
        self.side.applier.apply(&here).await
    }

    /// Removes documents from the clusters to which [`Hosting::apply`] applied them.
    pub(super) async fn remove(&self, served: &Side, documents: &[Value]) -> Result<(), CcmError> {
        let (there, here) = dealt(documents);
        self.side.applier.remove(&here).await?;
        served.applier.remove(&there).await
    }
}

/// The replica to which a document belongs.
fn replica_of(document: &Value) -> String {
    document["metadata"]["labels"][REPLICA_LABEL].as_str().unwrap_or_default().to_owned()
}

/// The service account of a workload's Pods.
fn account_of(workload: &Value) -> AccountKey {
    let name = pod_spec(workload)["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    let namespace = workload["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    AccountKey { namespace, name }
}
