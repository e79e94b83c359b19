//! What a backend is: a way to have a cluster. Each is a folder beside this file and a line in the table of backends
//! (`backends.rs`); nothing else asks which one it is.

use super::audit::{Asked, AuditQuery};
use super::error::ClusterError;
use super::operation::Operation;
use super::record::{CloudSite, ClusterRecord};
use super::requirement::Requirement;
use super::spec::ClusterSpec;
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use harness_core::check::Facility;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

/// Where machines of a cloud ask its metadata service.
pub const METADATA_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

/// A backend as the table has it: what is so of all its clusters, and how to begin with one.
#[derive(Clone, Copy, Debug)]
pub struct BackendEntry {
    /// What is so of all its clusters.
    pub facts: Facts,
    /// What it needs of this machine, each with whether that is there. Makes nothing.
    pub(super) requirements: fn() -> LocalBoxFuture<'static, Vec<Requirement>>,
    /// The backend for one cluster. Makes nothing yet.
    pub(super) begin: fn(ClusterSpec) -> Arc<dyn Backend>,
    /// Access to the machines of a cluster that this or another process of the run has brought up; `None` where there
    /// is none. Asks nobody: the first operation shows whether the cluster is still there.
    pub(super) attach: Attach,
}

/// Access to a cluster's machines, where there is any.
type Attach = fn(&ClusterRecord) -> Result<Option<Arc<dyn Machines>>, ClusterError>;

/// What is so of all clusters of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether its clusters are real.
    pub fidelity: Fidelity,
    /// What its Pods run.
    pub runs: Runs,
    /// How long its clusters can stay.
    pub lifetime: Lifetime,
    /// Whether it can make a management cluster beside another: one for the Pods of a hosted CCM.
    pub manages: bool,
    /// How many of its clusters fit on a small machine side by side.
    pub side_by_side: usize,
    /// What a cluster of one node takes of the machine's memory, GiB.
    pub memory_gib: u64,
    /// What can be done to machines of its clusters, where their node image and control plane have all it takes.
    pub facilities: &'static [Facility],
    /// Why a cluster of it may lack a facility, to be read after 'not possible here'.
    pub lacks_because: &'static str,
}

/// Whether a cluster is a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// Kubernetes itself.
    Real,
    /// A simulation, which certifies nothing.
    Simulated,
    /// There is none: nothing that is judged is of a cluster.
    Absent,
}

/// What the containers of Pods are made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Images, which may have to be loaded.
    Images,
    /// Programs of this machine that stand for images; all other containers are simulated.
    Programs,
}

/// How long a cluster can stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It lives in this process and ends with it.
    Process,
    /// Until somebody removes it.
    UntilRemoved,
}

/// One cluster of a run, from before it is there until it is gone.
///
/// `down` has to work after any part of `up`: after its success, after its failure, and after its future was dropped
/// half-way. It is called once, and only when `up` is no longer running.
pub trait Backend: Send + Sync + Debug {
    /// Looks whether this machine has what `up` needs, before anything is compiled; what may become a problem is said.
    ///
    /// # Errors
    /// Something is missing, with the way to get it.
    fn preflight(&self) -> LocalBoxFuture<'_, Result<Vec<String>, ClusterError>> {
        futures::future::ready(Ok(Vec::new())).boxed_local()
    }

    /// Where a cloud can be started while the cluster still comes up, made ready for it; `None` where only the running
    /// cluster shows that. Asked before `up`.
    ///
    /// # Errors
    /// The place could not be made.
    fn cloud_site(&self) -> LocalBoxFuture<'_, Result<Option<CloudSite>, ClusterError>> {
        futures::future::ready(Ok(None)).boxed_local()
    }

    /// Brings the cluster up, as far as its API server answers and its Nodes are registering.
    ///
    /// # Errors
    /// What failed, with the way out; [`ClusterError::is_usage`] when what was asked for cannot be.
    fn up(&self) -> LocalBoxFuture<'_, Result<ClusterRecord, ClusterError>>;

    /// Puts image archives (`docker save` format) into the nodes. Does nothing where nodes fetch images themselves.
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

    /// Removes everything that was made, in whatever state it is; what is gone already is fine.
    ///
    /// # Errors
    /// What could not be removed.
    fn down(&self) -> LocalBoxFuture<'_, Result<(), ClusterError>>;
}

/// The machines of a running cluster.
pub trait Machines: Send + Sync + Debug {
    /// Carries an operation out whose facility the cluster's record declares.
    ///
    /// # Errors
    /// It failed, or this one is not possible here although the facility is there
    /// ([`ClusterError::is_not_observable`]).
    fn operate<'a>(&'a self, operation: Operation<'a>) -> BoxFuture<'a, Result<(), ClusterError>>;

    /// Has what listens at `at` answer on every machine, and to Pods on its networks, whoever calls port 80 of
    /// [`METADATA_ADDRESS`], and knows them by the machine's address; whether that is so. Also after a machine's power was off.
    ///
    /// # Errors
    /// A machine refuses it.
    fn serve_metadata(&self, at: SocketAddrV4) -> BoxFuture<'_, Result<bool, ClusterError>> {
        let _ = at;
        futures::future::ready(Ok(false)).boxed()
    }

    /// What was asked of the API server, of a cluster whose record declares [`Facility::AuditLog`](harness_core::check::Facility).
    ///
    /// # Errors
    /// It could not be read, or nobody keeps it here.
    fn asked<'a>(&'a self, query: &'a AuditQuery) -> BoxFuture<'a, Result<Vec<Asked>, ClusterError>> {
        let what = format!("what {}* asked of the API server", query.user);
        let why = "this backend keeps no log of it".to_owned();
        futures::future::ready(Err(ClusterError::NotObservable { what, why })).boxed()
    }

    /// Ends when a machine has ended that no process of the run has switched off, and says so; never where nobody watches them.
    fn lost(&self) -> BoxFuture<'_, String> {
        futures::future::pending().boxed()
    }
}
