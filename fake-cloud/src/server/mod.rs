//! The running cloud: its state, the cloud API on one port and the driver API on another.

mod call;
mod config;
mod listen;
mod state;
mod tls;
mod twist;
mod unknown;

pub use config::{Config, Running, Server, StartError};
pub(crate) use state::{Shared, State};
pub(crate) use tls::Tls;
pub use unknown::Unknown;
