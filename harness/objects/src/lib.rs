//! Kubernetes objects: their current and past states in the cluster, and how they are built, read and shown.
//!
//! It is independent of clouds, CCMs and checks.

mod cache;
mod caches;
mod follow;
mod webhooks;

pub use cache::{Cache, Change, ChangeObserver, Version};
pub use caches::{ClusterCaches, WorldError, client_for, no_client};
pub use harness_core::objects::*;
pub use webhooks::webhooks_in_the_way;
