//! The undo steps of a check, as data.

use super::account::Account;
use futures::future::LocalBoxFuture;
use harness_clouds::Settings;
use harness_core::check::chain;
use harness_core::probe::{ReadError, poll};
use harness_session::Session;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Preconditions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A Service, for cleanup: the uid distinguishes it from another one of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceKey {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The owner that its load balancers have in the cloud.
    pub(super) owner: String,
}

/// One undo step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// Delete a Node.
    Node(String),
    /// Delete a Node's heartbeat Lease.
    Heartbeat(String),
    /// Delete an instance from the cloud.
    Instance(String),
    /// Remove a load balancer that the check created in the cloud.
    LoadBalancer(String),
    /// Remove a route that the check created in the cloud.
    Route(String),
    /// Delete a Service and wait until it is gone.
    Service(ServiceKey),
    /// Delete a namespace.
    Namespace(String),
    /// Clear a fault.
    Fault(u64),
    /// Release a barrier.
    Barrier(u64),
    /// Remove a taint from one of the cluster's own Nodes.
    Taint { node: String, key: String },
    /// Restore the labels of one of the cluster's own Nodes, and remove those that it did not have.
    Labels { node: String, before: BTreeMap<String, Option<String>> },
    /// Uncordon one of the cluster's own Nodes.
    Cordon(String),
    /// Restore the Pods of a Deployment of cluster DNS.
    Scale { deployment: String, replicas: i32 },
    /// Restore the network of one of the cluster's own Nodes.
    Unavailable(String),
    /// Restore the cloud's settings.
    Settings(Settings),
    /// Start the CCM again, with a new Pod for the replica that was made to exit.
    Ccm { ended: String },
    /// Remove the additional replicas of a check.
    Newcomers,
    /// Let the cluster assign pod CIDRs to new Nodes again.
    PodCidrs,
    /// Leave the crash of the leader; the last participant restores the CCM.
    Crash,
    /// Remove a permission that a check gave itself: a ClusterRole and its binding.
    Right(String),
    /// Restore the rules of a ClusterRole.
    Rules { role: String, rules: Value },
    /// Remove a service account of a check, with its roles and bindings.
    Account(Account),
    /// Remove the CCM of a check's trial.
    Trial(String),
    /// Remove the replica whose credential a check replaces.
    Replaced,
    /// Remove the blocks of connections to the API server.
    Reach,
    /// Switch machines on again.
    Power(Vec<String>),
    /// Resume a process that was frozen.
    Frozen { node: String, id: String },
    /// Remove a Lease other than the CCM's usual one.
    Lease { namespace: String, name: String },
    /// Allow the CCM's watches again.
    Watches,
    /// Remove both releases of an upgrade.
    Releases,
    /// Remove the CCM as shipped and set up the pod network.
    Cold,
    /// A step of a subject in another crate.
    Step(UndoStep),
}

type UndoFn = dyn for<'a> Fn(&'a Session) -> LocalBoxFuture<'a, Result<(), String>> + Send + Sync;

/// How to undo what a subject in another crate has done, see [`undo_at_end`](super::CheckCx::undo_at_end).
#[derive(Clone)]
pub struct UndoStep {
    what: String,
    pub(super) is_first: bool,
    undo: Arc<UndoFn>,
}

impl UndoStep {
    /// A step; `what` describes it, as in "deleting Pod a/b", and distinguishes it from the check's other steps.
    pub fn new(
        what: impl Into<String>,
        undo: impl for<'a> Fn(&'a Session) -> LocalBoxFuture<'a, Result<(), String>> + Send + Sync + 'static,
    ) -> UndoStep {
        UndoStep { what: what.into(), is_first: false, undo: Arc::new(undo) }
    }

    /// The same step, before those that remove objects: for what would get in their way.
    #[must_use]
    pub fn first(self) -> UndoStep {
        UndoStep { is_first: true, ..self }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// The reason why it is not undone.
    pub async fn carry_out(&self, session: &Session) -> Result<(), String> {
        (self.undo)(session).await
    }
}

impl PartialEq for UndoStep {
    fn eq(&self, other: &UndoStep) -> bool {
        self.what == other.what
    }
}

impl Eq for UndoStep {}

impl fmt::Debug for UndoStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl fmt::Display for Undo {
    /// What could not be undone, for a reader.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::Node(name) => write!(f, "deleting Node {name}"),
            Undo::Heartbeat(name) => write!(f, "deleting the heartbeat Lease of Node {name}"),
            Undo::Instance(id) => write!(f, "removing machine {id} from the cloud"),
            Undo::LoadBalancer(id) => write!(f, "removing load balancer {id} from the cloud"),
            Undo::Route(id) => write!(f, "removing route {id} from the cloud"),
            Undo::Service(key) => write!(f, "deleting Service {}/{}", key.namespace, key.name),
            Undo::Namespace(name) => write!(f, "deleting namespace {name}"),
            Undo::Fault(id) => write!(f, "clearing fault {id} of the cloud"),
            Undo::Barrier(id) => write!(f, "releasing barrier {id} of the cloud"),
            Undo::Taint { node, key } => write!(f, "removing taint {key} from Node {node}"),
            Undo::Labels { node, .. } => write!(f, "restoring the labels of Node {node}"),
            Undo::Cordon(node) => write!(f, "uncordoning Node {node}"),
            Undo::Scale { deployment, replicas } => write!(f, "scaling {deployment} back to {replicas}"),
            Undo::Unavailable(node) => write!(f, "restoring the network of Node {node}"),
            Undo::Settings(_) => f.write_str("restoring the settings of the cloud"),
            Undo::Ccm { ended } => write!(f, "starting replica {ended} of the CCM again"),
            Undo::Newcomers => f.write_str("removing the additional replicas of the CCM"),
            Undo::PodCidrs => f.write_str("giving new Nodes pod CIDRs again"),
            Undo::Crash => f.write_str("starting the CCM again after its leader crashed"),
            Undo::Right(name) => write!(f, "removing ClusterRole {name} and its binding"),
            Undo::Rules { role, .. } => write!(f, "restoring the rules of ClusterRole {role}"),
            Undo::Account(_) => f.write_str("removing the service account of the check"),
            Undo::Trial(name) => write!(f, "removing the CCM {name} that the check ran by itself"),
            Undo::Replaced => f.write_str("removing the replica whose credential was replaced"),
            Undo::Reach => f.write_str("making the API server reachable again"),
            Undo::Power(machines) => write!(f, "switching {} on again", machines.join(", ")),
            Undo::Frozen { node, .. } => write!(f, "thawing the frozen process on {node}"),
            Undo::Lease { namespace, name } => write!(f, "deleting Lease {namespace}/{name}"),
            Undo::Watches => f.write_str("letting the watches of the CCM begin again"),
            Undo::Releases => f.write_str("removing both releases of the upgrade"),
            Undo::Cold => f.write_str("removing the CCM as shipped and setting up the pod network"),
            Undo::Step(step) => f.write_str(&step.what),
        }
    }
}

/// How long a deletion is retried if the API server itself fails: as long as it may be unresponsive in a run. On a busy
/// machine, deletions of many objects have taken more than 5 s.
const LIMIT: Duration = Duration::from_secs(30);
/// Interval between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// Deletes something. A deletion of something that does not exist counts as successful. A deletion that fails because of
/// the API server or the connection to it is repeated.
///
/// # Errors
/// The API server's error: at once if it refuses, otherwise after [`LIMIT`].
pub(super) async fn gone<T>(deletion: impl AsyncFn() -> Result<T, kube::Error>) -> Result<(), String> {
    let goes = async |_: &mut String| match deletion().await {
        Ok(_) => Ok(Some(())),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(())),
        Err(error) => {
            let refused = matches!(&error, kube::Error::Api(status) if status.code < 500);
            Err(ReadError { text: chain(&error), fatal: refused })
        }
    };
    poll("a deletion", LIMIT, AGAIN, goes).await.map_err(|error| error.text)
}

/// How often the deletion of a Service is repeated if another client has changed it in between.
const DELETIONS: usize = 20;

/// Deletes a Service in its current version. Without a version the API server removes a Service at once if it sees no
/// finalizer, even if the CCM has just added one and relies on it (k8s.io/apiserver registry/generic/registry/store.go
/// Delete).
///
/// # Errors
/// The API server's own; a conflict if each of [`DELETIONS`] versions was outdated too soon.
pub(super) async fn delete_as_it_is(api: &Api<Service>, name: &str) -> Result<(), kube::Error> {
    let mut last = Ok(());
    for _ in 0..DELETIONS {
        let there = api.get(name).await?;
        let preconditions =
            Preconditions { resource_version: there.resource_version(), uid: there.metadata.uid };
        let asked = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        last = api.delete(name, &asked).await.map(drop);
        if !matches!(&last, Err(kube::Error::Api(status)) if status.code == 409) {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::Status;
    use serde_json::json;
    use std::cell::Cell;
    use std::sync::{Arc, Mutex};

    /// An API server whose Service is changed this many times, each time between being read and being deleted; records in
    /// which versions its deletion was requested.
    async fn deleted(changes: u32) -> (Vec<String>, Result<(), kube::Error>) {
        let state = Arc::new(Mutex::new((1_u32, Vec::new())));
        let seen = state.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let state = state.clone();
            async move {
                let deletes = request.method() == Method::DELETE;
                let body = request.into_body().collect_bytes().await.expect("a body");
                let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                let mut state = state.lock().expect("fine");
                let (version, asked_for) = &mut *state;
                let service =
                    json!({"metadata": {"name": "web", "uid": "u", "resourceVersion": version.to_string()}});
                let (code, answer) = if deletes {
                    let wanted = asked["preconditions"]["resourceVersion"].as_str().unwrap_or_default();
                    asked_for.push(wanted.to_owned());
                    match *version <= changes {
                        true => {
                            *version += 1;
                            let status = Status::failure("changed", "Conflict").with_code(409);
                            (409, serde_json::to_value(status).expect("plain data"))
                        }
                        false => (200, service),
                    }
                } else {
                    (200, service)
                };
                let answer =
                    Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, std::io::Error>(answer.expect("a response"))
            }
        });
        let ended = delete_as_it_is(&Api::namespaced(Client::new(server, "default"), "default"), "web").await;
        let asked_for = seen.lock().expect("fine").1.clone();
        (asked_for, ended)
    }

    #[tokio::test]
    async fn a_service_is_deleted_in_the_version_that_is_there_however_often_it_changes() {
        let (versions, ended) = deleted(2).await;
        assert_eq!(versions, ["1", "2", "3"]);
        assert!(ended.is_ok());
        let (versions, ended) = deleted(u32::MAX).await;
        assert_eq!(versions.len(), DELETIONS);
        assert!(matches!(ended, Err(kube::Error::Api(status)) if status.code == 409));
    }

    /// The number of tries for a deletion that is answered with `code` the first `times` times, and its result.
    async fn asked(code: u16, times: u32) -> (u32, Result<(), String>) {
        let asked = Cell::new(0);
        let deletion = async || {
            asked.set(asked.get() + 1);
            if asked.get() > times {
                return Ok(());
            }
            let status = Status::failure("no", "Reason").with_code(code);
            Err(kube::Error::Api(Box::new(status)))
        };
        let ended = gone(deletion).await;
        (asked.get(), ended)
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_of_the_api_server_does_not_end_a_deletion() {
        assert_eq!(asked(500, 2).await, (3, Ok(())));
        assert_eq!(asked(404, 1).await, (1, Ok(())));
        let (times, ended) = asked(500, u32::MAX).await;
        assert!(times > 10 && ended.is_err_and(|why| why.contains("the API server: no")));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_requests_are_not_repeated() {
        let (times, ended) = asked(403, u32::MAX).await;
        assert!(times == 1 && ended.is_err_and(|why| why.contains("the API server: no")));
    }
}
