//! What a check has made and leaves to be undone, as data.

use super::account::Account;
use harness_clouds::Settings;
use harness_components::image_credentials::NodeSetup;
use harness_core::check::chain;
use harness_core::probe::{ReadError, poll};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Preconditions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

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
    /// Take a route away that the check has put into the cloud.
    Route(String),
    /// Delete a Service and see it gone.
    Service(ServiceKey),
    /// Delete a namespace.
    Namespace(String),
    /// Clear a fault.
    Fault(u64),
    /// Release a barrier.
    Barrier(u64),
    /// Take a taint off one of the cluster's own Nodes.
    Taint { node: String, key: String },
    /// Give one of the cluster's own Nodes its labels back, and take those away that it did not have.
    Labels { node: String, before: BTreeMap<String, Option<String>> },
    /// Let Pods be placed on one of the cluster's own Nodes again.
    Cordon(String),
    /// Give a Deployment of cluster DNS its Pods back.
    Scale { deployment: String, replicas: i32 },
    /// Let one of the cluster's own Nodes have a network again.
    Unavailable(String),
    /// Set the cloud's settings back.
    Settings(Settings),
    /// Start the CCM again, with a fresh Pod for the replica that was made to end.
    Ccm { ended: String },
    /// Take the replicas away that a check has let come beside the others.
    Newcomers,
    /// Give new Nodes pod CIDRs again.
    PodCidrs,
    /// Leave the crash of the leader; the last participant brings the CCM back up.
    Crash,
    /// Take a right away that a check has given itself: a ClusterRole and its binding.
    Right(String),
    /// Give a ClusterRole its rules back.
    Rules { role: String, rules: Value },
    /// Take a service account of a check away, with its roles and bindings.
    Account(Account),
    /// Take the CCM away that a check runs by itself.
    Trial(String),
    /// Take the replica away whose credential a check replaces.
    Replaced,
    /// Let everybody reach the API server again.
    Reach,
    /// Take an image credential provider from a machine's kubelet.
    ImageCredentials { machine: String, setup: NodeSetup },
    /// Open the direct way from the control plane to these again.
    DirectWay(Vec<String>),
    /// Let server or agents of a network proxy come again.
    Proxy(Vec<Value>),
    /// Take objects away that a check has applied.
    Applied(Vec<Value>),
    /// Let a machine reach the cloud again.
    Cloudless(String),
    /// Give machines their power again.
    Power(Vec<String>),
    /// Wake a process that was frozen.
    Frozen { node: String, id: String },
    /// Take a Lease away that is not the CCM's usual one.
    Lease { namespace: String, name: String },
    /// Let the CCM's watches begin again.
    Watches,
    /// Take the CCM as shipped away and set the pod network up.
    Cold,
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
            Undo::ImageCredentials { machine, .. } => {
                write!(f, "removing the image credential provider from the kubelet of {machine}")
            }
            Undo::DirectWay(machines) => write!(f, "opening the direct way to {} again", machines.join(", ")),
            Undo::Proxy(_) => f.write_str("restoring the network proxy"),
            Undo::Applied(_) => f.write_str("deleting the objects that the check applied"),
            Undo::Cloudless(machine) => write!(f, "letting {machine} reach the cloud again"),
            Undo::Power(machines) => write!(f, "switching {} on again", machines.join(", ")),
            Undo::Frozen { node, .. } => write!(f, "thawing the frozen process on {node}"),
            Undo::Lease { namespace, name } => write!(f, "deleting Lease {namespace}/{name}"),
            Undo::Watches => f.write_str("letting the watches of the CCM begin again"),
            Undo::Cold => f.write_str("removing the CCM as shipped and setting up the pod network"),
        }
    }
}

/// How long the API server may fail by itself before what is to go is given up: as long as it may be silent in a run. On a busy
/// machine deletions of many objects have taken more than 5 s.
const LIMIT: Duration = Duration::from_secs(30);
/// How long until it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Takes something away. A deletion that found nothing to delete has reached its aim; one that the API server could not
/// carry out, through a fault of its own or of the way to it, is asked for again.
///
/// # Errors
/// What the API server said: at once where it refuses, else after [`LIMIT`].
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

/// How often a Service is deleted anew that somebody has changed in between.
const DELETIONS: usize = 20;

/// Deletes a Service in the version that is there. One that is to be deleted in any version the API server removes at once
/// where it has seen no finalizer, even when the CCM has added one since and relies on it
/// (k8s.io/apiserver registry/generic/registry/store.go Delete).
///
/// # Errors
/// The API server's own; that of a conflict when each of [`DELETIONS`] versions was gone too soon.
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

    /// An API server whose Service somebody changes so often, each time between its being read and its being deleted: in
    /// which versions it was asked to delete it.
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

    /// How often a deletion is asked for that is answered with `code` the first `times` times, and how it ends.
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
    async fn what_is_refused_is_not_asked_for_again() {
        let (times, ended) = asked(403, u32::MAX).await;
        assert!(times == 1 && ended.is_err_and(|why| why.contains("the API server: no")));
    }
}
