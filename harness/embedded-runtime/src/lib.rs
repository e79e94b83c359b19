//! The common parts of kubelets, scheduler and controllers of a cluster.
//!
//! They share a [`context::ControllerContext`]: the clients, the [`settings`] and a [`cache`] of each kind of object. Work
//! waits in a [`queue`], and results are written with [`writing`]. All of them use [`kube::Client`].

pub mod cache;
pub mod clients;
pub mod context;
pub mod events;
pub mod node;
pub mod quantities;
pub mod queue;
pub mod selectors;
pub mod settings;
pub mod taints;
pub mod tasks;
pub mod writing;
