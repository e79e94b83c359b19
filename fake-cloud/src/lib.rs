//! A cloud made of memory, for testing cloud controller managers.
//!
//! It holds instances, load balancers with what belongs to them, and routes ([`driver::Inventory`]), and speaks about
//! them in a vendor's API, called a dialect. Tests reach it through a second API on a port of its own, the driver API:
//! they set the cloud up, break it with [`driver::Fault`]s, hold calls at barriers, and read every call that was made
//! in a journal. It knows nothing of Kubernetes clusters and nothing of the harness.
//!
//! - Feature `client`: `driver::Client`, all that a test needs.
//! - Feature `server`: the cloud itself, `Server::start` for use inside a process, and the command `fake-cloud`
//!   ([`main`]). What records and disturbs calls (`journal`, `faults`, `barriers`) and the part of the driver API that
//!   tells of it (`driver::recorded`) are for others as well, such as a proxy before another cloud.

pub mod dialects;
pub mod driver;

#[cfg(feature = "server")]
pub mod barriers;
#[cfg(feature = "server")]
mod cli;
#[cfg(feature = "server")]
pub mod credentials;
#[cfg(feature = "server")]
pub mod faults;
#[cfg(feature = "server")]
pub mod journal;
#[cfg(feature = "server")]
mod model;
#[cfg(feature = "server")]
mod program;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod used_ids;

#[cfg(feature = "server")]
pub use program::main;
#[cfg(feature = "server")]
pub use server::{Config, Running, Server, StartError, Unknown};
