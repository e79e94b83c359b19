//! Access to the machines of a cluster of kind.

use super::record::KindRecord;
use crate::cluster::error::ClusterError;
use crate::cluster::record::{ClusterRecord, Machine};
use crate::images::Engine;

/// The machines of a cluster that kind has made.
#[derive(Debug)]
pub(super) struct KindMachines {
    pub(super) engine: Engine,
    pub(super) kind: KindRecord,
    pub(super) machines: Vec<Machine>,
}

impl KindMachines {
    /// Those of a cluster's record. Asks nobody.
    ///
    /// # Errors
    /// The record is of another backend, or its engine cannot be named.
    pub(super) fn attach(record: &ClusterRecord) -> Result<KindMachines, ClusterError> {
        let kind = KindRecord::of(record)?;
        let engine = Engine::attach(&kind.engine)?;
        Ok(KindMachines { engine, kind, machines: record.machines.clone() })
    }
}
