//! The interface of a backend: a way to get a cluster. Each backend is a folder next to this file and a line in the table
//! of backends (`backends.rs`); no other code distinguishes them.

use super::audit::{Asked, AuditQuery};
use super::error::ClusterError;
use super::operation::{ApiReach, Operation};
use super::record::{CloudSite, ClusterRecord};
use super::requirement::Requirement;
use super::spec::ClusterSpec;
use embedded_cluster::{RequestFault, RequestFaultState};
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use harness_config::DesiredCluster;
use harness_core::check::Facility;
use harness_core::probe::pause;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The address and port of a cloud's metadata service for its machines.
pub const METADATA_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// A backend in the table: the properties of all its clusters, and its entry points.
#[derive(Clone, Copy, Debug)]
pub struct BackendEntry {
    /// The properties of all its clusters.
    pub facts: Facts,
    /// Its requirements of this machine, each with whether it is met. Changes nothing.
    pub(super) requirements: fn() -> LocalBoxFuture<'static, Vec<Requirement>>,
    /// Checks a request as far as that is possible without starting anything.
    pub(super) check: fn(&DesiredCluster) -> Result<(), ClusterError>,
    /// Whether a cluster can begin with this minor version of Kubernetes and be upgraded to it, without downloading anything.
    pub(super) has: fn(u32) -> LocalBoxFuture<'static, Result<bool, ClusterError>>,
    /// The backend for one cluster. Creates nothing yet.
    pub(super) begin: fn(ClusterSpec) -> Arc<dyn Backend>,
    /// Access to the machines of a cluster that this or another process of the run has created; `None` if there is none.
    /// Makes no requests: the first operation shows whether the cluster still exists.
    pub(super) attach: Attach,
}

/// Access to a cluster's machines, if there is any.
type Attach = fn(&ClusterRecord) -> Result<Option<Arc<dyn Machines>>, ClusterError>;

/// The properties of all clusters of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether its clusters are real.
    pub fidelity: Fidelity,
    /// What its Pods run.
    pub runs: Runs,
    /// How long its clusters can stay.
    pub lifetime: Lifetime,
    /// Whether it can create a management cluster in addition, for the Pods of a hosted CCM.
    pub manages: bool,
    /// How many of its clusters fit on a small machine at the same time.
    pub side_by_side: usize,
    /// Memory of the machine that a single-node cluster needs, in GiB.
    pub memory_gib: u64,
    /// The facilities of its machines, with a fully capable node image and control plane.
    pub facilities: &'static [Facility],
    /// Why a cluster of it may lack a facility, to be read after 'not possible here'.
    pub lacks_because: &'static str,
}

/// Whether a cluster is a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// Kubernetes itself.
    Real,
    /// A simulation, which cannot certify.
    Simulated,
    /// There is none: nothing that is judged depends on a cluster.
    Absent,
}

/// What containers of Pods run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Images, which may have to be loaded.
    Images,
    /// Programs of this machine that replace images; all other containers are simulated.
    Programs,
}

/// The lifetime of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It lives in this process and ends with it.
    Process,
    /// Until it is removed.
    UntilRemoved,
}

/// One cluster of a run, from before it exists until it is gone.
///
/// `down` must work after any part of `up`: after its success, after its failure, and after its future was dropped
/// half-way. It is called once, and only when `up` is no longer running.
pub trait Backend: Send + Sync + Debug {
    /// Checks whether this machine has what `up` needs, before anything is compiled, and prints warnings.
    ///
    /// # Errors
    /// Something is missing, with the way to get it.
    fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
        futures::future::ready(Ok(Vec::new())).boxed_local()
    }

    /// Prepares the place where a cloud can be started while the cluster is still starting; `None` if it is known only
    /// once the cluster runs. Called before `up`.
    ///
    /// # Errors
    /// The place could not be prepared.
    fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
        futures::future::ready(Ok(None)).boxed_local()
    }

    /// Creates the cluster, until its API server answers and its Nodes are registering.
    ///
    /// # Errors
    /// What failed, with a remedy; [`ClusterError::is_usage`] when the user's request is not possible.
    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>>;

    /// Loads image archives (`docker save` format) into the nodes. Does nothing if nodes pull images themselves.
    ///
    /// # Errors
    /// A node refuses one.
    fn load<'a>(
        &'a self,
        cluster: &'a ClusterRecord,
        archives: &'a [&'a Path],
    ) -> LocalBoxFuture<'a, Result<(), ClusterError>> {
        let _ = (cluster, archives);
        futures::future::ready(Ok(())).boxed_local()
    }

    /// Removes everything that was created, in whatever state it is; missing parts are not an error.
    ///
    /// # Errors
    /// What could not be removed.
    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>>;
}

/// The machines of a running cluster.
pub trait Machines: Send + Sync + Debug {
    /// Carries out an operation whose facility the cluster's record declares.
    ///
    /// # Errors
    /// It failed, or this particular one is not possible although the facility exists
    /// ([`ClusterError::is_not_observable`]).
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>>;

    /// Makes the API server unreachable for the CCM for that long, and returns how long it was at most.
    ///
    /// # Errors
    /// It failed; clients may still be refused then.
    fn api_outage(&self, lasts: Duration) -> BoxFuture<'_, Result<Duration, ClusterError>> {
        async move {
            let began = Instant::now();
            self.operate(Operation::ApiServer(ApiReach::None)).await?;
            pause(lasts).await;
            self.operate(Operation::ApiServer(ApiReach::All)).await?;
            Ok(began.elapsed())
        }
        .boxed()
    }

    /// Makes the service at `at` answer on every machine, and to Pods on its networks, at port 80 of
    /// [`METADATA_ADDRESS`]; the service sees the machine's address as the client. Returns whether that works. It still
    /// works after a machine was switched off.
    ///
    /// # Errors
    /// A machine refuses it.
    fn serve_metadata(&self, at: SocketAddrV4) -> BoxFuture<'_, Result<bool, ClusterError>> {
        let _ = at;
        futures::future::ready(Ok(false)).boxed()
    }

    /// The requests to the API server, for a cluster whose record declares
    /// [`Facility::AuditLog`](harness_core::check::Facility).
    ///
    /// # Errors
    /// They could not be read, or there is no log.
    fn asked<'a>(&'a self, query: &'a AuditQuery) -> BoxFuture<'a, Result<Vec<Asked>, ClusterError>> {
        let what = format!("the API requests of {}*", query.user);
        let why = "this backend has no log of them".to_owned();
        futures::future::ready(Err(ClusterError::NotObservable { what, why })).boxed()
    }

    /// Faults of single requests of the CCM to the API server; `None` if this backend cannot cause any.
    fn api_faults(&self) -> Option<&dyn ApiFaults> {
        None
    }

    /// Returns a message when a machine has ended that no process of the run switched off; never returns if machines are
    /// not watched.
    fn lost(&self) -> BoxFuture<'_, String> {
        futures::future::pending().boxed()
    }
}

/// Causes faults of the API server that only the CCM sees: of single requests, and of what its watches show.
pub trait ApiFaults: Send + Sync {
    /// Sets a fault under an id that the caller chooses.
    ///
    /// # Errors
    /// The cluster is gone.
    fn set(&self, id: u64, fault: RequestFault) -> BoxFuture<'_, Result<(), ClusterError>>;

    /// What it has done so far; `None` if there is none with this id.
    ///
    /// # Errors
    /// The cluster is gone.
    fn state(&self, id: u64) -> BoxFuture<'_, Result<Option<RequestFaultState>, ClusterError>>;

    /// Removes it; requests that it holds continue.
    ///
    /// # Errors
    /// The cluster is gone.
    fn clear(&self, id: u64) -> BoxFuture<'_, Result<(), ClusterError>>;

    /// Whether watches, and lists with resource version 0, stay at the state of now, as with a watch cache that is behind
    /// etcd. When it ends, all changes are delivered in order.
    ///
    /// # Errors
    /// The cluster is gone.
    fn set_lag(&self, lags: bool) -> BoxFuture<'_, Result<(), ClusterError>>;
}
