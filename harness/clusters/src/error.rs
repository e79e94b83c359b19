//! What can go wrong with a cluster. Each error names the thing, the cause and the way out.

use super::kind::preflight::PreflightError;
use crate::images::{EngineError, ImageError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Something about the cluster went wrong.
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
        /// Why.
        cause: String,
    },
    /// What was asked for does not exist or cannot be; the user's to correct (exit code 2).
    #[error("{what}: {why}; {way_out}")]
    Usage {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        why: String,
        /// What would be right.
        way_out: String,
    },
    /// The machine lacks something that was asked for (exit code 3).
    #[error("{what} cannot be had: {why}; {way_out}")]
    Unavailable {
        /// What was asked for.
        what: String,
        /// What is missing.
        why: String,
        /// How to get it, or do without.
        way_out: String,
    },
    /// No node image.
    #[error(
        "no node image: the local Docker engine has none and none could be pulled ({why}); on a machine that reaches no \
         registry run ci/node-image/build once, or run with '--cluster embedded', which needs none"
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
        /// Where the machines' logs were put.
        evidence: Option<PathBuf>,
    },
    /// The cluster came up, but not as it was asked for.
    #[error(
        "machine {machine} came up with {found}, expected {expected}; this kind version merges kubeadm patches in a way \
         the harness does not know, try kind 0.33"
    )]
    NotAsConfigured {
        /// The machine.
        machine: String,
        /// What was asked for.
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
        /// The end of what it said.
        stderr: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {limit:?}: {seen}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// What was there instead.
        seen: String,
    },
    /// This cluster cannot do it; checks that need it are 'not observable'.
    #[error("{what} is not possible here: {why}")]
    NotObservable {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: String,
    },
    /// What the harness has made is still there.
    #[error("{what}")]
    NotRemoved {
        /// What, and why it could not be removed.
        what: String,
    },
    /// What was noted of a cluster is not what its backend writes.
    #[error("the record of cluster {name} cannot be read: {cause}; is it of another version of the harness?")]
    Record {
        /// Name of the cluster.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A part of the cluster is gone.
    #[error("{what} is gone; was the cluster removed meanwhile?")]
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
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl ClusterError {
    /// Whether the user asked for something that cannot be: exit code 2 rather than 3.
    pub fn is_usage(&self) -> bool {
        matches!(self, ClusterError::Usage { .. })
    }

    /// Whether it says 'not possible here' rather than 'failed'.
    pub fn is_not_observable(&self) -> bool {
        matches!(self, ClusterError::NotObservable { .. })
    }

    /// Turns an error of the system into one that says what was done with which file.
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
