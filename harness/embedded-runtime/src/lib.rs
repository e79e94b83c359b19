//! What kubelets, scheduler and controllers of a cluster are made of.
//!
//! [`world::World`] is what they share: the clients, the [`settings`] and a [`cache`] of each kind of object. Work waits in a
//! [`queue`], and is written with [`writing`]. Everything speaks through [`kube::Client`].

pub mod cache;
pub mod clients;
pub mod events;
pub mod node;
pub mod quantities;
pub mod queue;
pub mod selectors;
pub mod settings;
pub mod taints;
pub mod tasks;
pub mod world;
pub mod writing;
