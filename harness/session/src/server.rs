//! The API server of a session, where there is one: a run of an image credential provider alone has no cluster.

use crate::k8s::{World, WorldError, client_for, no_client};
use harness_clusters::{ClusterRecord, Fidelity, facts};
use harness_core::probe::Pulse;
use kube::Client;

/// Whether there is an API server.
pub(super) fn has_server(cluster: &ClusterRecord) -> bool {
    facts(cluster.backend).fidelity != Fidelity::Absent
}

/// A client for a cluster that names itself; one that refuses where there is none.
pub(super) async fn client_of(cluster: &ClusterRecord, user_agent: &str) -> Result<Client, WorldError> {
    if has_server(cluster) { client_for(&cluster.kubeconfig, user_agent).await } else { Ok(no_client()) }
}

/// What the cluster's watches show; nothing where there is none.
pub(super) async fn world_of(
    cluster: &ClusterRecord,
    client: &Client,
    pulse: Pulse,
) -> Result<World, WorldError> {
    if has_server(cluster) { World::open(client, pulse).await } else { Ok(World::empty(pulse)) }
}
