//! Access to the machines of a kind cluster.

use super::record::KindRecord;
use crate::error::ClusterError;
use crate::images::Engine;
use crate::record::{ClusterRecord, Machine};
use std::path::{Path, PathBuf};

/// The machines of a cluster that kind created.
#[derive(Debug)]
pub(super) struct KindMachines {
    pub(super) engine: Engine,
    pub(super) kind: KindRecord,
    pub(super) machines: Vec<Machine>,
    /// The cluster's name.
    pub(super) cluster: String,
    /// The cluster's folder, which the run's processes share.
    pub(super) folder: PathBuf,
}

impl KindMachines {
    /// The machines in a cluster's record. Makes no requests.
    ///
    /// # Errors
    /// The record is of another backend, or has no valid engine.
    pub(super) fn attach(record: &ClusterRecord) -> Result<KindMachines, ClusterError> {
        let kind = KindRecord::of(record)?;
        let engine = Engine::attach(&kind.engine)?;
        let folder = record.kubeconfig.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(KindMachines {
            engine,
            kind,
            machines: record.machines.clone(),
            cluster: record.name.clone(),
            folder,
        })
    }
}
