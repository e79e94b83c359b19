//! A cloud in memory, for testing cloud controller managers.
//!
//! It has instances, load balancers with their auxiliary objects, and routes
//! ([`fake_cloud_driver::Inventory`]), and serves them through a vendor's API, called a dialect. Tests use a
//! second API on a separate port, the driver API ([`fake_cloud_driver::Client`]). With it they set the cloud
//! up, break it with [`fake_cloud_driver::Fault`]s, hold calls at barriers, and read every call in a journal.
//! The fake cloud knows nothing of Kubernetes clusters and nothing of the harness.
//!
//! This crate contains the two HTTP APIs: [`Server::start`] for use inside a process, and the command
//! `fake-cloud` ([`main`]).

mod cli;
mod driver_api;
mod program;
mod server;

pub use program::main;
pub use server::{Config, Running, Server, StartError, Unknown};
