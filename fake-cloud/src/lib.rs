//! A cloud made of memory, for testing cloud controller managers.
//!
//! It holds instances, load balancers with what belongs to them, and routes ([`fake_cloud_driver::Inventory`]), and speaks
//! about them in a vendor's API, called a dialect. Tests reach it through a second API on a port of its own, the driver API
//! ([`fake_cloud_driver::Client`]): they set the cloud up, break it with [`fake_cloud_driver::Fault`]s, hold calls at barriers,
//! and read every call that was made in a journal. It knows nothing of Kubernetes clusters and nothing of the harness.
//!
//! This crate is the two HTTP APIs: [`Server::start`] for use inside a process, and the command `fake-cloud` ([`main`]).

mod cli;
mod driver_api;
mod program;
mod server;

pub use program::main;
pub use server::{Config, Running, Server, StartError, Unknown};
