//! The current policy, cached until a role or binding changes.

use std::sync::{Arc, Mutex, PoisonError};

use super::policy::{COLLECTIONS, Policy};
use crate::store::Store;

/// The current policy of the store, read again only after a change of a role or binding.
#[derive(Debug, Default)]
pub struct Current {
    read: Mutex<Option<(u64, Arc<Policy>)>>,
}

impl Current {
    /// The current policy.
    #[must_use]
    pub fn get(&self, store: &Store) -> Arc<Policy> {
        let changed =
            COLLECTIONS.iter().map(|collection| store.last_change(collection)).max().unwrap_or_default();
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
