//! A cloud made of memory.
//!
//! One model of instances, load balancers, their auxiliary objects and routes (contract section 4) behind vendors'
//! APIs, each a dialect; with an ordered journal of every call, faults, barriers, and an admin API apart from it all.
//! Knows nothing of Kubernetes.

pub mod admin;
#[cfg(feature = "server")]
mod barriers;
#[cfg(feature = "server")]
mod cloud;
#[cfg(feature = "server")]
pub mod dialects;
#[cfg(feature = "server")]
mod faults;
#[cfg(feature = "server")]
mod journal;
#[cfg(feature = "server")]
pub mod model;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "server")]
pub use server::{Config, Running, Server, StartError};
