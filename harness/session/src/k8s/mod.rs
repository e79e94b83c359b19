//! Kubernetes objects: what the cluster holds now and held before, how objects are built, read and shown.
//!
//! Knows no cloud, no CCM and no check.

mod cache;
mod follow;
mod literals;
mod observed;
mod read;
mod webhooks;
mod world;

pub use cache::{Cache, Change, ChangeObserver, Version};
pub use literals::*;
pub use observed::{show_addresses, show_taints};
pub use read::*;
pub use webhooks::webhooks_in_the_way;
pub use world::{World, WorldError, client_for, no_client};
