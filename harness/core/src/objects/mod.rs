//! Objects of the cluster and of the cloud: their well-known keys, how they are read, and how they appear in failures.

mod cloud;
mod kubernetes;
mod literals;
mod read;

pub use cloud::{show_entry, show_outcome};
pub use kubernetes::{show_addresses, show_taints, source_of};
pub use literals::*;
pub use read::*;
