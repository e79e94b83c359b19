//! Role-based access control: who may do what, from the roles and bindings in the store.

mod escalation;
mod policy;
mod rule;

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use escalation::{Escalation, check as check_escalation};
pub(crate) use policy::Policy;
pub(crate) use rule::Rule;

use crate::store::Store;

/// Where the roles and bindings are kept.
pub(crate) const SHELVES: [&str; 4] = [
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// The policy that the store holds now, read again only when a role or binding has changed.
#[derive(Debug, Default)]
pub(crate) struct Current {
    read: Mutex<Option<(u64, Arc<Policy>)>>,
}

impl Current {
    /// The policy as of now.
    #[must_use]
    pub(crate) fn get(&self, store: &Store) -> Arc<Policy> {
        let changed = SHELVES.iter().map(|shelf| store.last_change(shelf)).max().unwrap_or_default();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((revision, policy)) if *revision == changed => Arc::clone(policy),
            _ => {
                let policy = Arc::new(Policy::read(store));
                *read = Some((changed, Arc::clone(&policy)));
                policy
            }
        }
    }
}
