//! The tools for bodies of checks of components other than CCMs: image credential providers, network proxies of API servers,
//! and the CSI drivers to which in-tree volumes were migrated.
//!
//! A file of such checks begins with `use harness_component_testkit::prelude::*;` and needs nothing else of the harness.

pub mod prelude;

mod csi_judged;
mod csi_migration;
mod csi_volumes;
mod image_credentials;
mod network_proxy;
mod proxied_cluster;
mod proxied_peer;
mod pulling_kubelet;
mod streams;

pub use csi_migration::{CsiCluster, CsiMigration, Placed};
pub use csi_volumes::{CsiCall, StoredVolume};
pub use image_credentials::{Ask, ImageCredentialProvider};
pub use network_proxy::{DIAL_LIMIT, NetworkProxy, ProxyProcesses};
pub use proxied_cluster::ProxiedCluster;
pub use proxied_peer::{Astray, Peer, Way, api_server_counts, reads_and_writes};
pub use pulling_kubelet::{Pull, PullingKubelet, WithoutCloud};

/// The components themselves, one module each.
pub mod components {
    pub use harness_components::{csi_migration, image_credentials, network_proxy};
    pub use harness_config::CsiDriver;
}
