//! What only this backend knows of its clusters and needs again when it attaches.

use crate::error::ClusterError;
use crate::images::EngineRecord;
use crate::record::ClusterRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a cluster's record holds for this backend alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KindRecord {
    /// The Docker engine it runs on.
    pub(super) engine: EngineRecord,
    /// Name of the Docker network of its machines.
    pub(super) network: String,
    /// CNI plugins every machine has.
    pub(super) cni_plugins: BTreeSet<String>,
    /// Greatest size of a packet on the machines' network, bytes; 0 when unknown.
    pub(super) mtu: u32,
}

impl KindRecord {
    pub(super) fn of(record: &ClusterRecord) -> Result<KindRecord, ClusterError> {
        serde_json::from_value(record.own.clone())
            .map_err(|error| ClusterError::Record { name: record.name.clone(), cause: error.to_string() })
    }

    pub(super) fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a record is plain data")
    }
}

/// Whether kube-proxy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KubeProxy {
    /// It runs on every machine.
    Present,
    /// The node image has none.
    Absent,
}
