//! The identities of the controllers at the API server.

use std::fmt;
use std::sync::Arc;

use kube::Client;

/// One client for each role, so that authorisation and the audit log can distinguish them.
#[derive(Clone)]
pub struct Clients {
    /// The controller manager: a cluster administrator, or `system:kube-controller-manager` with all its controllers' rights.
    pub controller_manager: Client,
    /// The scheduler: `system:kube-scheduler`.
    pub scheduler: Client,
    /// The kubelet of a node by the node's name: `system:node:NAME` in the group `system:nodes`. Called
    /// before a node's first request.
    pub kubelet: Arc<dyn Fn(&str) -> Client + Send + Sync>,
}

impl Clients {
    /// The same client for every role, for example an administrator's.
    #[must_use]
    pub fn same(client: Client) -> Clients {
        let kubelet = client.clone();
        Clients {
            controller_manager: client.clone(),
            scheduler: client,
            kubelet: Arc::new(move |_| kubelet.clone()),
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clients")
    }
}
