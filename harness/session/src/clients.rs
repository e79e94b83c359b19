//! Whether a session has a cluster, and its clients.

use super::Session;
use super::server::{client_of, has_server};
use crate::k8s::WorldError;
use kube::Client;

impl Session {
    /// Whether there is a cluster.
    pub fn has_cluster(&self) -> bool {
        has_server(&self.state.cluster)
    }

    /// A client with its own user agent.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read any more.
    pub async fn client_named(&self, user_agent: &str) -> Result<Client, WorldError> {
        client_of(&self.state.cluster, user_agent).await
    }
}
