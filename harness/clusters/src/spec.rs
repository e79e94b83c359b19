//! What is asked of a backend when it has a cluster to bring up.

use crate::images::RunId;
use fake_cloud_driver::InstanceIds;
use harness_config::{DesiredCluster, ExistingCluster, OwnCluster, ProviderIdFormat};
use std::path::PathBuf;

/// A cluster to be brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The run, or its lane, that it is for.
    pub run: RunId,
    /// What it is for.
    pub purpose: Purpose,
    /// What it is to be like.
    pub desired: DesiredCluster,
    /// What kubelets write into `spec.providerID`.
    pub provider_ids: ProviderIds,
    /// The egress configuration of its API servers, where a network proxy is under test; only a backend of real clusters looks
    /// at it.
    pub network_proxy: Option<String>,
    /// Which images are programs of this machine; only a backend that runs programs looks at them.
    pub programs: Vec<ProgramImage>,
    /// The lane's own folder, for the kubeconfig (0600) and whatever else the backend keeps in files.
    pub folder: PathBuf,
    /// Where the machines' logs go when they do not come up.
    pub evidence: PathBuf,
}

impl ClusterSpec {
    /// The cluster's name, with which those of its machines begin: that of the lane, [`RunId::name`], for the one that is
    /// served.
    pub(super) fn name(&self) -> String {
        match self.purpose {
            Purpose::Served => self.run.name(),
            Purpose::Management => self.run.name_of("management"),
        }
    }

    /// What is asked of a cluster that the harness makes.
    ///
    /// # Panics
    /// Never for a plan that `config` has made: only the backend of existing clusters gets another.
    pub(super) fn own(&self) -> &OwnCluster {
        self.desired
            .own()
            .expect("a plan names an existing cluster only for the backend of existing clusters")
    }

    /// Which cluster that is there is meant; the one kubectl would use when none is named.
    pub(super) fn existing(&self) -> ExistingCluster {
        match &self.desired {
            DesiredCluster::Existing(existing) => existing.clone(),
            DesiredCluster::Own(_) | DesiredCluster::Absent => {
                ExistingCluster { kubeconfig: None, allow_foreign: false }
            }
        }
    }
}

/// What a cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be served by the CCM: its Nodes wait for one.
    Served,
    /// To run the Pods of a CCM that serves another cluster: its one Node waits for nobody and has its pod network. Asked
    /// only of a backend whose facts say that it can ([`Facts::manages`](super::Facts::manages)).
    Management,
}

/// An image that a program of this machine stands for: containers of the image run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramImage {
    /// The image that Pods name.
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
