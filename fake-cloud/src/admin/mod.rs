//! The admin API: how a test sets the cloud up, provokes it and reads it. Its own port, its own token.

#[cfg(feature = "client")]
mod client;
mod diff;
#[cfg(feature = "server")]
pub(crate) mod routes;
mod types;

#[cfg(feature = "client")]
pub use client::{Client, ClientError};
pub use diff::InventoryDiff;
pub use types::*;
