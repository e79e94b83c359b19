//! The fake cloud of a run: in a container or in this process, and how to reach it.
//!
//! What is said to it through its admin API is [`fake_cloud::admin::Client`]'s.

mod container;
mod local;
mod network;
mod record;

pub use container::{Cloud, CloudError, CloudSpec, fresh_token};
pub use local::LocalCloud;
pub use network::network_of;
pub use record::CloudRecord;
