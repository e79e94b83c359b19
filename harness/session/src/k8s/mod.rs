//! Kubernetes objects: their current and past states in the cluster, and how they are built, read and shown.
//!
//! It is independent of clouds, CCMs and checks.

mod cache;
mod follow;
mod webhooks;
mod world;

pub use cache::{Cache, Change, ChangeObserver, Version};
pub use harness_core::objects::*;
pub use webhooks::webhooks_in_the_way;
pub use world::{World, WorldError, client_for, no_client};
