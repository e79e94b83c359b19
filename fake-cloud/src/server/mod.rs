//! The running cloud: its state, the cloud API on one port and the admin API on another.

mod call;
mod config;
mod listen;
mod state;

pub use config::{Config, Running, Server, StartError, Unknown};
pub(crate) use state::{Shared, State};
