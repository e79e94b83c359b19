//! Kubernetes objects: what the cluster holds now and held before, how objects are built, read and shown.
//!
//! Knows no cloud, no CCM and no check.

mod cache;
mod follow;
mod webhooks;
mod world;

pub use cache::{Cache, Change, ChangeObserver, Version};
pub use harness_core::objects::*;
pub use webhooks::webhooks_in_the_way;
pub use world::{World, WorldError, client_for, no_client};
