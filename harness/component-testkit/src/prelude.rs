//! Everything that the body of a check needs: `use harness_component_testkit::prelude::*;`.
//!
//! Every item has an example where it is defined; `cargo xtask tidy` reports items without one.

pub use crate::{
    CsiCall, CsiCluster, CsiMigration, DIAL_LIMIT, ImageCredentialProvider, NetworkProxy, Peer,
    ProxyProcesses, Pull, PullingKubelet, StoredVolume, Way, api_server_counts, reads_and_writes,
};
pub use harness_testkit::prelude::*;
