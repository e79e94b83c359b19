//! Clusters: created with kind, in this process, or existing ones.
//!
//! A [`Backend`] creates and removes a cluster; a [`Cluster`] is one that is up, for any process of its run. It does not
//! use the Kubernetes API: Nodes, taints and readiness are the session's.

pub mod images;
pub mod reaper;

mod absent;
mod audit;
mod backend;
mod embedded;
mod error;
mod existing;
mod frozen;
mod host;
mod kind;
mod leftovers;
mod network;
mod operation;
mod record;
mod registration;
mod requirement;
mod spec;
mod topology;
mod version;

pub use audit::{Asked, AuditQuery};
pub use backend::{
    ApiFaults, Backend, BackendEntry, Facts, Fidelity, Lifetime, METADATA_ADDRESS, Machines, Runs,
};
pub use embedded::CLOUD_NAME;
pub use embedded_cluster::{RequestEffect, RequestFault, RequestFaultState, RequestMatch};
pub use error::ClusterError;
pub use existing::{InsideCluster, usual_kubeconfig};
pub use host::{cores, docker_disk_mib, memory_mib};
pub use kind::available_image as available_kind_image;
pub use leftovers::cleanup;
pub use leftovers::{LeftBehind, Leftover, LeftoverKind, RemovalError, list_leftovers, remove_leftovers};
pub use operation::{
    ApiReach, ContainerOp, KubeletOp, LinkOp, Operation, Part, PodNetwork, PodTraffic, PowerOp, SetupOp,
    Target, WatchOp,
};
pub use record::{
    API_SERVER_PORT, About, CloudSite, ClusterRecord, Machine, Ownership, PodNetworkPlan, Role,
};
pub use registration::{PlannedTaint, Registration};
pub use requirement::{Need, Remedy, Requirement, State};
pub use spec::{ClusterSpec, ProgramImage, ProviderIds, Purpose};
pub use topology::{Families, PlannedMachine, planned_machines};

use harness_config::{BackendKind, DesiredCluster};
use harness_core::check::Facility;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

macro_rules! backend_entries {
    ($($(#[$doc:meta])* $item:ident = $word:literal in $folder:ident,)+) => {
        fn entry(kind: BackendKind) -> &'static BackendEntry {
            match kind {
                $(BackendKind::$item => &$folder::BACKEND,)+
            }
        }
    };
}

harness_config::backends!(backend_entries);

/// The properties of all clusters of a backend.
pub fn facts(kind: BackendKind) -> &'static Facts {
    &entry(kind).facts
}

/// Whether clusters of a backend can begin with this minor version of Kubernetes and be upgraded to it, without downloading
/// anything.
///
/// # Errors
/// That is unknown: the Docker engine does not answer.
pub async fn has_version(kind: BackendKind, minor: u32) -> Result<bool, ClusterError> {
    (entry(kind).has)(minor).await
}

/// A backend's requirements of this machine, each with whether it is met. Changes nothing.
pub async fn requirements(kind: BackendKind) -> Vec<Requirement> {
    (entry(kind).requirements)().await
}

/// Checks a request for a cluster as far as that is possible without starting anything.
///
/// # Errors
/// [`ClusterError::is_usage`]: the backend has no such cluster, or the kubeconfig of an existing one is not there.
pub fn check(kind: BackendKind, desired: &DesiredCluster) -> Result<(), ClusterError> {
    (entry(kind).check)(desired)
}

/// The backend of that kind for one cluster. Creates nothing yet.
pub fn begin(kind: BackendKind, spec: ClusterSpec) -> Arc<dyn Backend> {
    (entry(kind).begin)(spec)
}

/// A cluster that is up.
#[derive(Clone, Debug)]
pub struct Cluster {
    record: ClusterRecord,
    machines: Option<Arc<dyn Machines>>,
}

impl Cluster {
    /// Uses the cluster that this or another process of the run has created. Makes no requests; the first operation shows
    /// whether it still exists.
    ///
    /// # Errors
    /// The record of its backend cannot be read.
    pub fn attach(record: ClusterRecord) -> Result<Cluster, ClusterError> {
        let machines = (entry(record.backend).attach)(&record)?;
        Ok(Cluster { record, machines })
    }

    /// Everything that another process needs to [`Cluster::attach`] to it.
    pub fn record(&self) -> &ClusterRecord {
        &self.record
    }

    /// The facilities of its machines. What the cloud and the CCM offer or need is not included.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        self.record.facilities.clone()
    }

    /// Its machines, control planes first; none if the harness has no access to them.
    pub fn machines(&self) -> &[Machine] {
        &self.record.machines
    }

    /// Carries out an operation on its machines.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] if the cluster does not have the facility; otherwise it failed.
    pub async fn operate(&self, operation: Operation<'_>) -> Result<(), ClusterError> {
        let facility = operation.facility();
        match &self.machines {
            Some(machines) if self.record.facilities.contains(&facility) => machines.operate(operation).await,
            _ => Err(self.lacks(operation.to_string(), facility)),
        }
    }

    /// Makes the API server unreachable for the CCM for that long, and returns how long it was at most.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] if the cluster cannot do it; otherwise it failed, and clients may still be refused.
    pub async fn api_outage(&self, lasts: Duration) -> Result<Duration, ClusterError> {
        let operation = Operation::ApiServer(ApiReach::None);
        match &self.machines {
            Some(machines) if self.record.facilities.contains(&operation.facility()) => {
                machines.api_outage(lasts).await
            }
            _ => Err(self.lacks(operation.to_string(), operation.facility())),
        }
    }

    /// Makes the metadata service at `at` answer at the address that machines of a cloud use; returns whether that is
    /// possible here.
    ///
    /// # Errors
    /// A machine refuses it.
    pub async fn serve_metadata(&self, at: SocketAddrV4) -> Result<bool, ClusterError> {
        match &self.machines {
            Some(machines) => machines.serve_metadata(at).await,
            None => Ok(false),
        }
    }

    /// The requests to its API server, as far as they are still logged, in order.
    ///
    /// # Errors
    /// [`ClusterError::NotObservable`] if it has no such log; otherwise it could not be read.
    pub async fn asked(&self, query: &AuditQuery) -> Result<Vec<Asked>, ClusterError> {
        let facility = Facility::AuditLog;
        match &self.machines {
            Some(machines) if self.record.facilities.contains(&facility) => machines.asked(query).await,
            _ => Err(self.lacks("the log of API requests".to_owned(), facility)),
        }
    }

    /// Faults of single requests of the CCM to the API server; `None` if this cluster cannot cause any.
    pub fn api_faults(&self) -> Option<&dyn ApiFaults> {
        self.machines.as_ref()?.api_faults()
    }

    /// Returns a message when a machine has ended that no process of the run switched off; never returns if machines are
    /// not watched.
    pub async fn lost_machine(&self) -> String {
        match &self.machines {
            Some(machines) => machines.lost().await,
            None => std::future::pending().await,
        }
    }

    fn lacks(&self, what: String, facility: Facility) -> ClusterError {
        let (backend, because) = (self.record.backend, facts(self.record.backend).lacks_because);
        let why = format!("this cluster of backend '{backend}' has no {facility}, because {because}");
        ClusterError::NotObservable { what, why }
    }
}

#[cfg(test)]
mod tests;
