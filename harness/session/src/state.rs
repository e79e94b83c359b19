//! What a run's processes tell one another of it, in files of its folder.

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
    /// URL of the cloud's API for this replica; empty where the profile says it.
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

/// A credential that expires, and what comes in its place.
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

/// What lets the CCM in to a real cloud, by placeholder. Secrets, as the tokens of replicas.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Credentials(pub(super) BTreeMap<String, String>);

impl Credentials {
    /// That of every replica, where there is one.
    pub(super) fn token(&self) -> Option<String> {
        self.0.get(CLOUD_TOKEN).cloned()
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What kubeadm gave a Node and a kubelet does not: lost when the Node object is deleted, put back when it returns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeRole {
    /// Node name.
    pub name: String,
    /// Role and exclusion labels.
    pub labels: BTreeMap<String, String>,
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
    /// The cluster that a hosted CCM's Pods run on; `None` where that is the same.
    pub management: Option<ClusterRecord>,
    /// The fake cloud.
    pub cloud: CloudRecord,
    /// Where the journal begins for whoever joins: what came before belongs to others, and a cloud need not keep it.
    pub journal_from: u64,
    /// How the CCM reaches the cloud's metadata service, where there is one.
    pub metadata: Option<Metadata>,
    /// CCM image reference; empty for none.
    pub ccm_image: String,
    /// CCM image digest; empty for none.
    pub ccm_image_digest: String,
    /// The CCM's command in its containers; empty where it is the image's own.
    pub ccm_command: Vec<String>,
    /// An image in the nodes whose container does nothing: for Pods that only have to run.
    pub idle_image: String,
    /// The command of such a container; empty where it is the image's own.
    pub idle_command: Vec<String>,
    /// Replicas.
    pub replicas: Vec<ReplicaRecord>,
    /// Those that come beside them when a check wants more; none where replicas do not elect.
    pub newcomers: Vec<ReplicaRecord>,
    /// What the image credential provider under test has of the cloud, where there is one.
    pub plugin: Option<ReplicaRecord>,
    /// Tokens for the CCM whose credential a check replaces, one after the other; none where there is no CCM. Secrets, as
    /// those of the replicas.
    pub replaced: Option<Replaced>,
    /// What lets the CCM in to a real cloud; empty where the cloud is the run's.
    #[serde(default)]
    pub credentials: Credentials,
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
    /// Whom the cloud lets in, each by its name.
    pub(crate) fn callers(&self) -> impl Iterator<Item = &ReplicaRecord> {
        self.replicas.iter().chain(&self.newcomers).chain(&self.plugin)
    }

    /// Makes its credentials known: they must appear in no output.
    pub(crate) fn keep_secret(&self) {
        let tokens = self.callers().map(|replica| &replica.token);
        let replaced = self.replaced.iter().flat_map(|tokens| [&tokens.first, &tokens.then]);
        let of_the_cloud = self.cloud.secrets.iter().chain(self.credentials.0.values());
        tokens.chain(replaced).chain(of_the_cloud).for_each(|token| secrets::know(token));
        // One that cannot be read is told when it is used.
        for cluster in std::iter::once(&self.cluster).chain(&self.management) {
            let kubeconfig = std::fs::read_to_string(&cluster.kubeconfig).unwrap_or_default();
            secrets::know_kubeconfig(&kubeconfig);
        }
    }
}
