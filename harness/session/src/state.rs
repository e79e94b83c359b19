//! The state that a run's processes share, in files of its folder.

use crate::ccm::{Form, LeaseKey, Metadata, Replica};
use harness_clouds::CloudRecord;
use harness_clusters::ClusterRecord;
use harness_config::CLOUD_TOKEN;
use harness_core::check::Blocker;
use harness_core::ledger::Setting;
use harness_core::secrets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One replica, as the state file keeps it. The token is a secret; the file is 0600.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Name.
    pub name: String,
    /// Cloud token.
    pub token: String,
    /// Secure port.
    pub secure_port: u16,
    /// URL of the cloud's API for this replica; empty if the profile sets it.
    pub endpoint: String,
}

impl ReplicaRecord {
    pub(crate) fn replica(&self) -> Replica {
        let ReplicaRecord { name, token, secure_port, endpoint } = self.clone();
        Replica { name, token, secure_port, endpoint }
    }
}

impl std::fmt::Debug for ReplicaRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaRecord").field("name", &self.name).field("token", &"<redacted>").finish()
    }
}

/// The image of a release of the CCM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseImage {
    /// Its reference.
    pub image: String,
    /// The digest of its content.
    pub digest: String,
    /// The CCM's command in its containers; empty for the image's own.
    pub command: Vec<String>,
}

/// A credential that expires, and its replacement.
#[derive(Clone, Serialize, Deserialize)]
pub struct Replaced {
    /// The token that is valid first.
    pub first: String,
    /// The token that replaces it.
    pub then: String,
}

impl std::fmt::Debug for Replaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Credentials of the CCM for a real cloud, by placeholder. Secrets, as are the tokens of replicas.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Credentials(pub(super) BTreeMap<String, String>);

impl Credentials {
    /// The common credential of all replicas, if there is one.
    pub(super) fn token(&self) -> Option<String> {
        self.0.get(CLOUD_TOKEN).cloned()
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What kubeadm set on a Node and a kubelet does not: lost when the Node object is deleted, restored when it returns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeRole {
    /// Node name.
    pub name: String,
    /// Role and exclusion labels.
    pub labels: BTreeMap<String, String>,
    /// Taints other than those of the cloud provider and the node lifecycle controller.
    pub taints: Vec<k8s_openapi::api::core::v1::Taint>,
}

/// The current state of the CCM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum CcmState {
    /// In this form, and leading unless the form is `absent`.
    Settled {
        /// The form.
        form: Form,
    },
    /// In this form, recovering from a disturbance: a check that needs it waits until it leads.
    Returning {
        /// The form.
        form: Form,
    },
    /// It did not start; it is not tried again.
    Broken {
        /// Why.
        why: String,
        /// The claim that it violated; `None` if the environment is to blame.
        by: Option<Blocker>,
    },
}

/// Everything that a process needs to join the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    /// Run id: part of the names of everything that the run creates.
    pub run_id: String,
    /// Number of the lane within the run, from 0.
    pub lane: u32,
    /// The cluster.
    pub cluster: ClusterRecord,
    /// The cluster of a hosted CCM's Pods; `None` if that is the same.
    pub management: Option<ClusterRecord>,
    /// The fake cloud.
    pub cloud: CloudRecord,
    /// The start of the journal for processes that join: earlier entries belong to others, and a cloud need not keep
    /// them.
    pub journal_from: u64,
    /// How the CCM reaches the cloud's metadata service, if there is one.
    pub metadata: Option<Metadata>,
    /// CCM image reference; empty for none.
    pub ccm_image: String,
    /// CCM image digest; empty for none.
    pub ccm_image_digest: String,
    /// The CCM's command in its containers; empty for the image's own.
    pub ccm_command: Vec<String>,
    /// An image in the nodes whose container does nothing, for Pods that only have to run.
    pub idle_image: String,
    /// The command of such a container; empty for the image's own.
    pub idle_command: Vec<String>,
    /// Replicas.
    pub replicas: Vec<ReplicaRecord>,
    /// Additional replicas that checks can start; none if replicas do not elect a leader.
    pub newcomers: Vec<ReplicaRecord>,
    /// The caller's identity of an old release in an upgrade; none if there is no CCM.
    pub old_release: Option<ReplicaRecord>,
    /// The image of the old release; `None` if it is that of the CCM under test, or if there is no old release.
    pub old_image: Option<ReleaseImage>,
    /// What the image credential provider under test gets from the cloud, if there is one.
    pub plugin: Option<ReplicaRecord>,
    /// Tokens for the CCM whose credential a check replaces, one after the other; none if there is no CCM. Secrets, as
    /// are those of the replicas.
    pub replaced: Option<Replaced>,
    /// The CCM's credentials for a real cloud; empty if the cloud is the run's.
    #[serde(default)]
    pub credentials: Credentials,
    /// The Lease, if the CCM elects a leader.
    pub lease: Option<LeaseKey>,
    /// The minor version that the API server reports.
    pub served_minor: u32,
    /// Roles of the nodes as kubeadm set them.
    pub roles: Vec<NodeRole>,
    /// What the backend changes in the way the CCM runs.
    pub changes: Vec<Setting>,
}

impl RunState {
    /// The image of the CCM under test.
    pub(crate) fn image(&self) -> ReleaseImage {
        ReleaseImage {
            image: self.ccm_image.clone(),
            digest: self.ccm_image_digest.clone(),
            command: self.ccm_command.clone(),
        }
    }

    /// The clients that may use the cloud, each with its name.
    pub(crate) fn callers(&self) -> impl Iterator<Item = &ReplicaRecord> {
        self.replicas.iter().chain(&self.newcomers).chain(&self.plugin).chain(&self.old_release)
    }

    /// Registers its credentials for redaction: they must not appear in any output.
    pub(crate) fn keep_secret(&self) {
        let tokens = self.callers().map(|replica| &replica.token);
        let replaced = self.replaced.iter().flat_map(|tokens| [&tokens.first, &tokens.then]);
        let of_the_cloud = self.cloud.secrets.iter().chain(self.credentials.0.values());
        tokens.chain(replaced).chain(of_the_cloud).for_each(|token| secrets::know(token));
        // A file that cannot be read is reported when it is used.
        for cluster in std::iter::once(&self.cluster).chain(&self.management) {
            let kubeconfig = std::fs::read_to_string(&cluster.kubeconfig).unwrap_or_default();
            secrets::know_kubeconfig(&kubeconfig);
        }
    }
}
