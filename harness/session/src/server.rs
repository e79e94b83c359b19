//! The API server of a session, if there is one: a run of only an image credential provider has no cluster.

use crate::k8s::{ClusterCaches, WorldError, client_for, no_client};
use harness_clusters::{ClusterRecord, Fidelity, facts};
use harness_core::probe::Pulse;
use kube::Client;

/// Whether there is an API server.
pub(super) fn has_server(cluster: &ClusterRecord) -> bool {
    facts(cluster.backend).fidelity != Fidelity::Absent
}

/// A client with a user agent for a cluster; without a cluster, one that fails.
pub(super) async fn client_of(cluster: &ClusterRecord, user_agent: &str) -> Result<Client, WorldError> {
    if has_server(cluster) { client_for(&cluster.kubeconfig, user_agent).await } else { Ok(no_client()) }
}

/// The state of the cluster's watches; empty without a cluster.
pub(super) async fn world_of(
    cluster: &ClusterRecord,
    client: &Client,
    pulse: Pulse,
) -> Result<ClusterCaches, WorldError> {
    if has_server(cluster) {
        ClusterCaches::open(client, pulse).await
    } else {
        Ok(ClusterCaches::empty(pulse))
    }
}
