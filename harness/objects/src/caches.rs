//! The cluster as its watches show it: Nodes, Services, Pods and Leases, each with its recent history.
//!
//! Watches are opened before a check provokes anything (contract TEST-01), so that no change of an object is missed
//! between two reads, and waiting costs the API server nothing.

use super::cache::Cache;
use super::follow::follow;
use harness_core::probe::{Pulse, ReadError, poll};
use http::{HeaderName, HeaderValue};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Resource};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// The API server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The kubeconfig does not exist or is invalid.
    #[error("reading kubeconfig {path}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: Box<kube::config::KubeconfigError>,
    },
    /// No client could be created from it.
    #[error("making a client from kubeconfig {path}")]
    Client {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: Box<kube::Error>,
    },
    /// The watches could not be opened.
    #[error("{0}")]
    NotReady(#[source] ReadError),
}

/// A client for the cluster of `kubeconfig` with the user agent `user_agent`, which audit logs show.
///
/// # Errors
/// When the file cannot be read or does not describe a usable cluster.
pub async fn client_for(kubeconfig: &Path, user_agent: &str) -> Result<Client, WorldError> {
    let unreadable = |cause| WorldError::Kubeconfig { path: kubeconfig.to_owned(), cause: Box::new(cause) };
    let file = Kubeconfig::read_from(kubeconfig).map_err(unreadable)?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|cause| WorldError::Kubeconfig { path: kubeconfig.to_owned(), cause: Box::new(cause) })?;
    config.connect_timeout = Some(Duration::from_secs(5));
    if let Ok(value) = HeaderValue::from_str(user_agent) {
        config.headers.push((HeaderName::from_static("user-agent"), value));
    }
    Client::try_from(config)
        .map_err(|cause| WorldError::Client { path: kubeconfig.to_owned(), cause: Box::new(cause) })
}

/// A client for a run without a cluster: every call fails with that reason.
pub fn no_client() -> Client {
    let refuse = |_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("this run has no cluster"))
    };
    Client::new(tower::service_fn(refuse), "default")
}

/// Watched views of everything that checks examine.
#[derive(Debug)]
pub struct ClusterCaches {
    /// Nodes.
    pub nodes: Cache<Node>,
    /// Services of all namespaces.
    pub services: Cache<Service>,
    /// Pods of all namespaces.
    pub pods: Cache<Pod>,
    /// Leases of all namespaces but the kubelets' heartbeats.
    pub leases: Cache<Lease>,
    pulse: Pulse,
    // Dropping the set ends the watches.
    _watches: JoinSet<()>,
}

impl ClusterCaches {
    /// Opens the watches and returns when each has its first list.
    ///
    /// # Errors
    /// The API server does not answer in 30 s.
    pub async fn open(client: &Client, pulse: Pulse) -> Result<ClusterCaches, WorldError> {
        let mut watches = JoinSet::new();
        let (all, not_heartbeats) = (None, Some("metadata.namespace!=kube-node-lease"));
        let world = ClusterCaches {
            nodes: feed(&mut watches, Api::all(client.clone()), ("Nodes", all), &pulse),
            services: feed(&mut watches, Api::all(client.clone()), ("Services", all), &pulse),
            pods: feed(&mut watches, Api::all(client.clone()), ("Pods", all), &pulse),
            leases: feed(&mut watches, Api::all(client.clone()), ("Leases", not_heartbeats), &pulse),
            pulse,
            _watches: watches,
        };
        let ready = async |seen: &mut String| {
            let state = [
                ("nodes", world.nodes.is_ready()),
                ("services", world.services.is_ready()),
                ("pods", world.pods.is_ready()),
                ("leases", world.leases.is_ready()),
            ];
            let waits_for = state.iter().filter(|(_, ready)| !ready).map(|(what, _)| *what);
            *seen = format!("not read yet: {}", waits_for.collect::<Vec<_>>().join(", "));
            Ok(state.iter().all(|(_, ready)| *ready).then_some(()))
        };
        poll("the watches on the API server", Duration::from_secs(30), Duration::from_millis(20), ready)
            .await
            .map_err(WorldError::NotReady)?;
        Ok(world)
    }

    /// The world of a run without a cluster, which is empty.
    pub fn empty(pulse: Pulse) -> ClusterCaches {
        let (nodes, services) = (Cache::of("Nodes"), Cache::of("Services"));
        let (pods, leases) = (Cache::of("Pods"), Cache::of("Leases"));
        nodes.listed(Vec::new());
        services.listed(Vec::new());
        pods.listed(Vec::new());
        leases.listed(Vec::new());
        ClusterCaches { nodes, services, pods, leases, pulse, _watches: JoinSet::new() }
    }

    /// Beats whenever a watch shows something new.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}

/// Opens a watch on a kind, given by its plural name and a field selector.
fn feed<K>(
    watches: &mut JoinSet<()>,
    api: Api<K>,
    (kind, fields): (&'static str, Option<&'static str>),
    pulse: &Pulse,
) -> Cache<K>
where
    K: Resource + Clone + Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let cache = Cache::of(kind);
    watches.spawn(follow(api, fields, cache.clone(), pulse.clone()));
    cache
}
