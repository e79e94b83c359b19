//! The storage of one kind.

use std::sync::RwLock;

use super::collection::{Collection, Keep};

/// One kind's objects, and the notification of its watchers.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) collection: RwLock<Collection>,
    pub(super) changed: tokio::sync::watch::Sender<u64>,
}

impl Place {
    pub(super) fn new(keep: Keep) -> Self {
        Self { collection: RwLock::new(Collection::new(keep)), changed: tokio::sync::watch::Sender::new(1) }
    }
}
