//! What is tested besides CCMs: image credential providers, network proxies and CSI migration.

pub mod csi_migration;
pub mod image_credentials;
pub mod network_proxy;
