//! The state of one API server: the objects, access rights, and the clock.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use embedded_objects::kinds::{self, Kind};
use embedded_semantics::alloc::Allocator;
use tokio::sync::watch;

use super::collections::collection_of;
use super::definitions::Definitions;
use super::interruption::Interruption;
use super::limits::{Limits, Usage};
use super::reach::CurrentPartition;
use crate::audit::Audit;
use crate::auth::attributes::{Attributes, Decision};
use crate::auth::authority::Authority;
use crate::auth::jwt::Signer;
use crate::auth::node;
use crate::auth::rbac::{self, Rule};
use crate::auth::user::{MASTERS, User};
use crate::issued::Issued;
use crate::lag::Lag;
use crate::logs::Logs;
use crate::request_faults::RequestFaults;
use crate::store::{Keep, Store};
use crate::version::Version;

/// The state of one API server.
#[derive(Debug)]
pub struct Api {
    /// All objects.
    pub store: Store,
    /// Service addresses and ports. Only a writer may lock it.
    pub allocator: Mutex<Allocator>,
    /// The certificate authority.
    pub authority: Arc<Authority>,
    /// Signs service account tokens.
    pub signer: Signer,
    /// The log of every request.
    pub audit: Audit,
    version: RwLock<Version>,
    /// The address that the server listens on.
    pub address: SocketAddr,
    /// Becomes true when the server stops; watches end then.
    pub closing: watch::Receiver<bool>,
    /// Whether watches may continue.
    pub interruption: Interruption,
    /// How far behind watches and cached lists are.
    pub lag: Lag,
    /// Which users can reach the server.
    pub reach: CurrentPartition,
    /// Faults of single requests.
    pub request_faults: RequestFaults,
    /// The resources that each user has in use.
    pub usage: Arc<Usage>,
    /// The source of container logs, once it is set.
    pub logs: OnceLock<Arc<dyn Logs>>,
    /// The listener for new credentials, once it is set.
    pub issued: OnceLock<Arc<dyn Issued>>,
    /// The custom resources.
    pub definitions: Definitions,
    roles: rbac::Current,
    node_rules: Vec<Rule>,
}

impl Api {
    /// The state of a server without any objects.
    #[must_use]
    pub fn new(
        (keep, limits): (Keep, Limits),
        allocator: Allocator,
        authority: Arc<Authority>,
        signer: Signer,
        version: Version,
        closing: watch::Receiver<bool>,
        address: SocketAddr,
    ) -> Self {
        let collections = kinds::ALL.iter().filter(|kind| kind.stored()).map(collection_of);
        Self {
            store: Store::new(collections, keep),
            allocator: Mutex::new(allocator),
            authority,
            signer,
            audit: Audit::default(),
            version: RwLock::new(version),
            address,
            closing,
            interruption: Interruption::default(),
            lag: Lag::default(),
            reach: CurrentPartition::default(),
            request_faults: RequestFaults::default(),
            usage: Usage::new(limits),
            logs: OnceLock::new(),
            issued: OnceLock::new(),
            definitions: Definitions::default(),
            roles: rbac::Current::default(),
            node_rules: crate::policy::rules_of("system:node"),
        }
    }

    /// The Kubernetes version that is served.
    #[must_use]
    pub fn version(&self) -> Version {
        *self.version.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves another version from now on.
    pub fn set_version(&self, version: Version) {
        *self.version.write().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// The kind that is served with this group, version and plural name.
    #[must_use]
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        kinds::find(group, version, plural).or_else(|| self.definitions.find(group, version, plural))
    }

    /// Whether the user is allowed to do this: the node authorizer decides first, then the roles, as in
    /// kubeadm's servers.
    #[must_use]
    pub fn authorize(&self, user: &User, request: &Attributes) -> Decision {
        if user.in_group(MASTERS) {
            return Decision::Allow(String::new());
        }
        let by_node = node::decide(&self.store, &self.node_rules, user, request);
        if by_node.is_allowed() {
            return by_node;
        }
        match (by_node, self.policy().decide(user, request)) {
            (_, allowed @ Decision::Allow(_)) => allowed,
            (Decision::NoOpinion(first), Decision::NoOpinion(second)) if second.is_empty() => {
                Decision::NoOpinion(first)
            }
            (Decision::NoOpinion(first), second) if first.is_empty() => second,
            (first, second) => Decision::NoOpinion(format!("[{}, {}]", first.reason(), second.reason())),
        }
    }

    /// Notifies the listener of a new credential.
    pub fn tell_issued(&self, credential: &str) {
        if let Some(issued) = self.issued.get() {
            issued.issued(credential);
        }
    }

    /// The current roles and bindings.
    #[must_use]
    pub fn policy(&self) -> Arc<rbac::Policy> {
        self.roles.get(&self.store)
    }
}
