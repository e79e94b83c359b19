//! What one run's processes share: a folder of its own, the state file in it, and the locks.

use crate::ccm::{Form, LeaseKey, Replica};
use crate::check::Blocker;
use crate::cloud::CloudRecord;
use crate::cluster::ClusterRecord;
use crate::ledger::Setting;
use crate::secrets::Secrets;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Start of every run folder's name in the system's folder for temporary files.
pub const FOLDER_PREFIX: &str = "ccm-conformance-";

/// The run's folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}")]
pub struct StateError {
    /// What was tried.
    pub operation: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub cause: std::io::Error,
}

/// One replica, as the state file keeps it. The token is a secret; the file is 0600.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Name.
    pub name: String,
    /// Cloud token.
    pub token: String,
    /// Secure port.
    pub secure_port: u16,
}

impl ReplicaRecord {
    pub(crate) fn replica(&self) -> Replica {
        Replica { name: self.name.clone(), token: self.token.clone(), secure_port: self.secure_port }
    }
}

impl std::fmt::Debug for ReplicaRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaRecord").field("name", &self.name).field("token", &"<redacted>").finish()
    }
}

/// What kubeadm gave a Node and a kubelet does not: lost when the Node object is deleted, put back when it returns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeRole {
    /// Node name.
    pub name: String,
    /// Role and exclusion labels.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Taints but the cloud provider's and the node lifecycle's.
    pub taints: Vec<k8s_openapi::api::core::v1::Taint>,
}

/// How the CCM stands at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum CcmState {
    /// In this form, and leading unless the form is `absent`.
    Settled {
        /// The form.
        form: Form,
    },
    /// In this form, coming back from a disturbance: whoever needs it waits until it leads.
    Returning {
        /// The form.
        form: Form,
    },
    /// It did not come up; nobody tries again.
    Broken {
        /// Why.
        why: String,
        /// The promise it broke by that; `None` where the environment is to blame.
        by: Option<Blocker>,
    },
}

/// Everything a process needs to join the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    /// Run id: in the name of everything the run makes.
    pub run_id: String,
    /// Number of the lane within the run, from 0.
    pub lane: u32,
    /// The cluster.
    pub cluster: ClusterRecord,
    /// The fake cloud.
    pub cloud: CloudRecord,
    /// CCM image reference; empty for none.
    pub ccm_image: String,
    /// CCM image digest; empty for none.
    pub ccm_image_digest: String,
    /// An image in the nodes whose container does nothing: for Pods that only have to run.
    pub idle_image: String,
    /// Replicas.
    pub replicas: Vec<ReplicaRecord>,
    /// The Lease, when the CCM elects leaders.
    pub lease: Option<LeaseKey>,
    /// Minor version the API server reports.
    pub served_minor: u32,
    /// Roles of the nodes as kubeadm made them.
    pub roles: Vec<NodeRole>,
    /// What the backend changes in how the CCM runs.
    pub changes: Vec<Setting>,
}

impl RunState {
    /// What must appear in no output: the tokens of the run.
    pub fn secrets(&self) -> Secrets {
        let tokens = self.replicas.iter().map(|replica| replica.token.as_str());
        Secrets::new(tokens.chain(self.cloud.secrets.iter().map(String::as_str)))
    }
}

/// The run's folder. Dropping it leaves the folder: [`RunDir::remove`] is explicit.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held as long as a process owns the run; `clean` leaves runs alone whose lock is held.
    _owner: Option<File>,
}

impl RunDir {
    /// A fresh folder, owned by this process.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(run_id: &str) -> Result<RunDir, StateError> {
        let path = std::env::temp_dir().join(format!("{FOLDER_PREFIX}{run_id}"));
        let fail = |operation, path: &Path| {
            let path = path.to_owned();
            move |cause| StateError { operation, path, cause }
        };
        std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&path)
            .map_err(fail("creating folder", &path))?;
        let owner = open(&path.join("owner.lock"))?;
        owner.lock().map_err(fail("locking", &path))?;
        Ok(RunDir { path, _owner: Some(owner) })
    }

    /// The folder of a run that another process owns.
    pub fn join(path: &Path) -> RunDir {
        RunDir { path: path.to_owned(), _owner: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a living process owns the run in `path`.
    pub fn is_owned(path: &Path) -> bool {
        let Ok(file) = open(&path.join("owner.lock")) else { return false };
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Writes a JSON file, 0600, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StateError> {
        let path = self.path.join(name);
        let fail = |cause| StateError { operation: "writing", path: path.clone(), cause };
        let text = serde_json::to_vec(value).map_err(|e| fail(e.into()))?;
        let mut file = tempfile::NamedTempFile::new_in(&self.path).map_err(fail)?;
        file.write_all(&text).map_err(fail)?;
        file.persist(&path).map_err(|error| fail(error.error))?;
        Ok(())
    }

    /// Reads a JSON file; `None` when it is not there.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<Option<T>, StateError> {
        let path = self.path.join(name);
        let fail = |cause| StateError { operation: "reading", path: path.clone(), cause };
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| fail(e.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail(error)),
        }
    }

    /// Holds the cluster for one check until dropped: alone, or beside others that share. Works between threads and
    /// processes alike.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn hold_cluster(&self, alone: bool) -> Result<File, StateError> {
        let path = self.path.join("cluster.lock");
        let file = open(&path)?;
        let locked = if alone { file.lock() } else { file.lock_shared() };
        locked.map_err(|cause| StateError { operation: "locking", path, cause })?;
        Ok(file)
    }

    /// Holds the right to change how the CCM is deployed, until dropped.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn hold_ccm(&self) -> Result<File, StateError> {
        let path = self.path.join("ccm.lock");
        let file = open(&path)?;
        file.lock().map_err(|cause| StateError { operation: "locking", path, cause })?;
        Ok(file)
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    /// When something in it cannot be removed.
    pub fn remove(self) -> Result<(), StateError> {
        let path = self.path.clone();
        std::fs::remove_dir_all(&path).map_err(|cause| StateError { operation: "removing", path, cause })
    }
}

fn open(path: &Path) -> Result<File, StateError> {
    let opened =
        OpenOptions::new().create(true).truncate(false).write(true).read(true).mode(0o600).open(path);
    opened.map_err(|cause| StateError { operation: "opening", path: path.to_owned(), cause })
}
