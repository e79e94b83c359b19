//! The part of a cluster's record that only this backend uses, for attaching to the cluster.

use crate::error::ClusterError;
use crate::images::EngineRecord;
use crate::record::ClusterRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The part of a cluster's record that only this backend uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KindRecord {
    /// The Docker engine of the cluster.
    pub(super) engine: EngineRecord,
    /// Name of the Docker network of its machines.
    pub(super) network: String,
    /// CNI plugins that all machines have.
    pub(super) cni_plugins: BTreeSet<String>,
    /// Maximum packet size on the machines' network, in bytes; 0 if unknown.
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
    /// The node image has no kube-proxy.
    Absent,
}
