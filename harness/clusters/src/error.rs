//! Errors of clusters. Each names the thing, the cause and the remedy.

use super::kind::preflight::PreflightError;
use crate::images::{EngineError, ImageError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Docker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The machine cannot run a cluster.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The embedded cluster.
    #[error("the embedded cluster did not start: {cause}")]
    Embedded {
        /// The cause.
        cause: String,
    },
    /// The request is not possible; the user has to correct it (exit code 2).
    #[error("{what}: {why}; {way_out}")]
    Usage {
        /// The request.
        what: String,
        /// What is wrong with it.
        why: String,
        /// What would be possible.
        way_out: String,
    },
    /// The machine lacks something that was requested (exit code 3).
    #[error("{what} is not available: {why}; {way_out}")]
    Unavailable {
        /// The request.
        what: String,
        /// What is missing.
        why: String,
        /// How to get it, or how to run without it.
        way_out: String,
    },
    /// No node image.
    #[error(
        "no node image: the local Docker engine has none and none could be pulled ({why}); without access to a \
         registry, run ci/node-image/build once, or run with '--cluster embedded', which needs no node image"
    )]
    NoNodeImage {
        /// Why none could be pulled.
        why: String,
    },
    /// kind failed.
    #[error("kind could not create the cluster {name}: {what}{}{}", kubelet_said(journal.as_deref()), logs_are_in(evidence.as_deref()))]
    Kind {
        /// Name of the cluster.
        name: String,
        /// How kind ended, and its last lines.
        what: String,
        /// The end of the first control plane's kubelet log, where there was one.
        journal: Option<String>,
        /// The folder with the machines' logs.
        evidence: Option<PathBuf>,
    },
    /// The cluster started, but not as requested.
    #[error(
        "machine {machine} started with {found}, expected {expected}; this kind version merges kubeadm patches in an \
         unknown way, try kind 0.33"
    )]
    NotAsConfigured {
        /// The machine.
        machine: String,
        /// What was requested.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A command in a machine failed.
    #[error("on machine {machine} '{command}' ended with status {status}: {stderr}")]
    Command {
        /// The machine.
        machine: String,
        /// The command.
        command: String,
        /// Its exit status.
        status: i64,
        /// The end of its output.
        stderr: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {} s: {seen}", .limit.as_secs_f64())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was there instead.
        seen: String,
    },
    /// This cluster cannot do it; checks that need it are 'not observable'.
    #[error("{what} is not possible here: {why}")]
    NotObservable {
        /// The request.
        what: String,
        /// The reason.
        why: String,
    },
    /// Something that the harness created still exists.
    #[error("{what}")]
    NotRemoved {
        /// What, and why it could not be removed.
        what: String,
    },
    /// The record of a cluster is not in the form that its backend writes.
    #[error(
        "the record of cluster {name} cannot be read: {cause}; it may come from another version of the harness"
    )]
    Record {
        /// Name of the cluster.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A part of the cluster is gone.
    #[error("{what} is gone; the cluster may have been removed")]
    Gone {
        /// The part.
        what: String,
    },
    /// A file could not be read or written.
    #[error("cannot {operation} {}", path.display())]
    File {
        /// A verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl ClusterError {
    /// Whether the user's request is not possible: exit code 2, not 3.
    pub fn is_usage(&self) -> bool {
        matches!(self, ClusterError::Usage { .. })
    }

    /// Whether it means 'not possible here', not 'failed'.
    pub fn is_not_observable(&self) -> bool {
        matches!(self, ClusterError::NotObservable { .. })
    }

    /// Adds operation and file to an error of the system.
    pub(crate) fn file(
        operation: &'static str,
        path: &Path,
    ) -> impl Fn(std::io::Error) -> ClusterError + use<> {
        let path = path.to_owned();
        move |source| ClusterError::File { operation, path: path.clone(), source }
    }
}

fn kubelet_said(lines: Option<&str>) -> String {
    lines.map_or_else(String::new, |lines| format!("\nthe kubelet's last lines:\n{lines}"))
}

fn logs_are_in(folder: Option<&Path>) -> String {
    folder.map_or_else(String::new, |folder| format!("\nthe machines' logs are in {}", folder.display()))
}
