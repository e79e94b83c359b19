//! What a check has made and leaves to be undone, as data.

use crate::check::chain;
use crate::cloud::Settings;

/// Which Service, for cleanup: the uid tells it from a namesake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceKey {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// Whom its load balancers say they belong to, in the cloud.
    pub(super) owner: String,
}

/// One thing to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// Delete a Node.
    Node(String),
    /// Delete a Node's heartbeat Lease.
    Heartbeat(String),
    /// Delete an instance from the cloud.
    Instance(String),
    /// Take a load balancer away that the check has put into the cloud.
    LoadBalancer(String),
    /// Delete a Service and see it gone.
    Service(ServiceKey),
    /// Delete a namespace.
    Namespace(String),
    /// Clear a fault.
    Fault(u64),
    /// Release a barrier.
    Barrier(u64),
    /// Take a taint off one of the cluster's own Nodes.
    Taint { node: String, key: &'static str },
    /// Set the cloud's settings back.
    Settings(Settings),
    /// Start the CCM again, with a fresh Pod for the replica that was made to end.
    Ccm { ended: String },
    /// Leave the crash of the leader; the last participant brings the CCM back up.
    Crash,
    /// Take the CCM as shipped away and set the pod network up.
    Cold,
}

/// A deletion that found nothing to delete has reached its aim.
pub(super) fn gone<T>(outcome: Result<T, kube::Error>) -> Result<(), String> {
    match outcome {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}
