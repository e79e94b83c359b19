//! What cluster is wanted.

use crate::config::{Kubernetes, NodeIp, Topology};
use crate::images::RunId;
use std::path::PathBuf;

/// A cluster to be made with kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSpec {
    /// The run it is for. Cluster and network get the name [`RunId::name`].
    pub run: RunId,
    /// Its machines and network.
    pub topology: Topology,
    /// Its Kubernetes.
    pub kubernetes: Kubernetes,
    /// What kubelets write into `spec.providerID`.
    pub provider_id: ProviderIds,
    /// Whether kubelets announce a node IP.
    pub node_ip: NodeIp,
    /// The run's own folder, for kubeconfig (0600) and kind's configuration.
    pub folder: PathBuf,
    /// Where the machines' logs go when they do not come up.
    pub evidence: Option<PathBuf>,
}

/// What kubelets write into `spec.providerID` (contract ENV-03).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderIds {
    /// Nothing; the CCM fills it in.
    Empty,
    /// This text followed by the machine's name, e.g. `native://i-` for `native://i-<name>`.
    Chosen {
        /// The text before the machine's name.
        prefix: String,
    },
}

/// Told what is being done, in words for the person who waits.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);
