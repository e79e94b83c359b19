//! A CCM whose Pods run on another cluster than the one it serves.

use super::deal::dealt;
use super::deploy::CcmError;
use super::kubeconfig::{AccountKey, Given, KUBECONFIG, ServerAddress, kubeconfig_of};
use super::manifests::{key_of, mentions, pod_spec, pod_spec_mut, substitute};
use super::render::{REPLICA_LABEL, Rendered};
use super::side::Side;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Annotation of a hosted CCM's workload: the id of the token in its kubeconfig, by which the API server that it serves knows it.
pub const TOKEN_ID: &str = "ccm-conformance.io/token-id";

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
    /// placeholder stands, on the management cluster. Each replica gets a kubeconfig of its own, for the account that a workload among the documents
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
            // Not a Pod's own: another token would be a reason to replace it.
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

    /// Removes documents from where [`Hosting::apply`] has put them.
    pub(super) async fn remove(&self, served: &Side, documents: &[Value]) -> Result<(), CcmError> {
        let (there, here) = dealt(documents);
        self.side.applier.remove(&here).await?;
        served.applier.remove(&there).await
    }
}

/// Whose document it is, of several replicas.
fn replica_of(document: &Value) -> String {
    document["metadata"]["labels"][REPLICA_LABEL].as_str().unwrap_or_default().to_owned()
}

/// The service account of a workload's Pods.
fn account_of(workload: &Value) -> AccountKey {
    let name = pod_spec(workload)["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    let namespace = workload["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    AccountKey { namespace, name }
}
