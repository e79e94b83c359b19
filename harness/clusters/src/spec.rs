//! The request for a cluster, for a backend.

use crate::images::RunId;
use fake_cloud_driver::InstanceIds;
use harness_config::{DesiredCluster, OwnCluster, ProviderIdFormat};
use std::path::PathBuf;

/// A cluster to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// Its run, or the run's lane.
    pub run: RunId,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its required properties.
    pub desired: DesiredCluster,
    /// What kubelets write into `spec.providerID`.
    pub provider_ids: ProviderIds,
    /// The egress configuration of its API servers, if a network proxy is under test; only used by a backend with real
    /// clusters.
    pub network_proxy: Option<String>,
    /// Which images are programs of this machine; only used by a backend that runs programs.
    pub programs: Vec<ProgramImage>,
    /// The lane's own folder, for the kubeconfig (0600) and other files of the backend.
    pub folder: PathBuf,
    /// The folder for the machines' logs if they do not start.
    pub evidence: PathBuf,
}

impl ClusterSpec {
    /// The cluster's name, which is also the prefix of its machines' names: that of the lane, [`RunId::name`], for the
    /// served one.
    pub(super) fn name(&self) -> String {
        match self.purpose {
            Purpose::Served => self.run.name(),
            Purpose::Management => self.run.name_of("management"),
        }
    }

    /// The requested properties of a cluster that the harness creates.
    ///
    /// # Panics
    /// Never for a plan from `config`: only the backend of existing clusters gets another one.
    pub(super) fn own(&self) -> &OwnCluster {
        self.desired
            .own()
            .expect("a plan names an existing cluster only for the backend of existing clusters")
    }
}

/// The purpose of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be served by the CCM: its Nodes wait for one.
    Served,
    /// To run the Pods of a CCM that serves another cluster: its one Node waits for nothing and has its pod network. Only
    /// requested from a backend that supports it ([`Facts::manages`](super::Facts::manages)).
    Management,
}

/// An image that is replaced by a program of this machine: containers of the image run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramImage {
    /// The image in Pods.
    pub image: String,
    /// The program.
    pub program: PathBuf,
    /// Arguments it gets before those of the Pod.
    pub first_arguments: Vec<String>,
    /// Arguments it gets after those of the Pod.
    pub more_arguments: Vec<String>,
}

/// What kubelets write into `spec.providerID` (contract ENV-03).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderIds {
    /// Nothing; the CCM fills it in.
    Empty,
    /// What the CCM would set.
    Chosen {
        /// The format of provider ids.
        format: ProviderIdFormat,
        /// The format of the instance id in them, which is derived from the machine's name.
        ids: InstanceIds,
    },
}

impl ProviderIds {
    /// What the kubelet of that machine sets; `None` for nothing.
    pub(super) fn of(&self, machine: &str) -> Option<String> {
        match self {
            ProviderIds::Empty => None,
            ProviderIds::Chosen { format, ids } => Some(format.render(&ids.make(machine))),
        }
    }
}
