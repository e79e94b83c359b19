//! A cluster of a session: the one that is served, or the management cluster of a hosted CCM.

use super::SessionError;
use super::server::{client_of, world_of};
use crate::ccm::{Hosting, ServerAddress, Side};
use crate::k8s::ClusterCaches;
use harness_clusters::{Cluster, ClusterRecord};
use harness_core::probe::Pulse;
use kube::Client;
use kube::config::Kubeconfig;
use std::sync::Arc;

/// A cluster, with its client and watches.
#[derive(Clone)]
pub struct Site {
    cluster: Cluster,
    client: Client,
    world: Arc<ClusterCaches>,
}

impl Site {
    pub(super) fn new(cluster: Cluster, client: Client, world: Arc<ClusterCaches>) -> Site {
        Site { cluster, client, world }
    }

    /// Joins the cluster of that record.
    ///
    /// # Errors
    /// When its API server cannot be read.
    pub(super) async fn join(record: &ClusterRecord, pulse: Pulse) -> Result<Site, SessionError> {
        let cluster = Cluster::attach(record.clone())?;
        let client = client_of(record, "ccm-conformance").await?;
        let world = Arc::new(world_of(record, &client, pulse).await?);
        Ok(Site { cluster, client, world })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The harness's own client for it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The state of its watches.
    pub fn world(&self) -> &ClusterCaches {
        &self.world
    }

    /// The same cluster for the CCM's handle.
    pub(super) fn side(&self) -> Side {
        Side::new(self.client.clone(), self.world.clone())
    }

    /// The management cluster of a CCM that serves the cluster of that record.
    ///
    /// # Errors
    /// The kubeconfig of that cluster does not contain the address of its API server.
    pub(super) fn hosting(&self, served: &ClusterRecord) -> Result<Hosting, SessionError> {
        Ok(Hosting::new(self.side(), address_of(served)?))
    }
}

/// The address at which Pods of a management cluster reach the API server of that cluster.
fn address_of(served: &ClusterRecord) -> Result<ServerAddress, SessionError> {
    let file = &served.kubeconfig;
    let broken = |why: String| SessionError::Precondition(format!("kubeconfig {}: {why}", file.display()));
    let read = Kubeconfig::read_from(file).map_err(|error| broken(harness_core::check::chain(&error)))?;
    let cluster = read.clusters.into_iter().find_map(|named| named.cluster);
    let cluster = cluster.ok_or_else(|| broken("it does not name a cluster".to_owned()))?;
    let url = served.api_server_for_other_clusters.clone().or(cluster.server);
    match (url, cluster.certificate_authority_data) {
        (Some(url), Some(ca_data)) => Ok(ServerAddress { url, ca_data }),
        _ => Err(broken("it has no address or no CA of its API server".to_owned())),
    }
}
