//! What cluster is wanted.

use crate::config::{Kubernetes, NodeIp, ProviderIdFormat, Topology};
use crate::images::RunId;
use fake_cloud::dialects::InstanceIds;
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
    /// What the CCM would fill in.
    Chosen {
        /// The form of provider ids.
        format: ProviderIdFormat,
        /// The form of the instance id in them, which is made of the machine's name.
        ids: InstanceIds,
    },
}

impl ProviderIds {
    /// What the kubelet of that machine writes; `None` for nothing.
    pub(super) fn of(&self, machine: &str) -> Option<String> {
        match self {
            ProviderIds::Empty => None,
            ProviderIds::Chosen { format, ids } => Some(format.render(&ids.make(machine))),
        }
    }
}

/// Told what is being done, in words for the person who waits.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);
