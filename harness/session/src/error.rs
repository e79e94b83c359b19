//! Errors of creating or joining an environment.

use super::StateError;
use crate::ccm::{CcmError, ManifestError};
use crate::k8s::WorldError;
use harness_core::check::chain;
use std::path::PathBuf;

/// The environment cannot be created or joined.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Docker, kind or the cluster.
    #[error(transparent)]
    Cluster(#[from] harness_clusters::ClusterError),
    /// An image.
    #[error(transparent)]
    Image(#[from] harness_clusters::images::ImageError),
    /// The cloud did not start.
    #[error(transparent)]
    CloudStart(#[from] harness_clouds::StartError),
    /// The cloud, in one call.
    #[error("{}", chain(.0))]
    Cloud(#[from] harness_clouds::CloudError),
    /// The API server.
    #[error(transparent)]
    ClusterCaches(#[from] WorldError),
    /// The API server, in one call.
    #[error("request to the API server: {}", chain(.0))]
    Api(Box<kube::Error>),
    /// The CCM.
    #[error("the CCM was not deployed: {0}")]
    Ccm(#[from] CcmError),
    /// A manifest file.
    #[error("manifest {path} cannot be read: {cause}")]
    ManifestFile {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// The manifests as a whole.
    #[error(transparent)]
    Manifests(#[from] ManifestError),
    /// The run's folder.
    #[error("{}", chain(.0))]
    State(#[from] StateError),
    /// A node is not as the harness needs it (contract section 3).
    #[error("{0}")]
    Precondition(String),
    /// The user's request is not possible.
    #[error("{0}")]
    Usage(String),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl SessionError {
    /// Whether the user's request is wrong, not the environment: exit code 2.
    pub fn is_usage(&self) -> bool {
        match self {
            SessionError::Cluster(error) => error.is_usage(),
            SessionError::ManifestFile { .. } | SessionError::Manifests(_) | SessionError::Usage(_) => true,
            _ => false,
        }
    }
}

impl From<kube::Error> for SessionError {
    fn from(error: kube::Error) -> SessionError {
        SessionError::Api(Box::new(error))
    }
}
