//! The tested components: CCMs, image credential providers, network proxies and CSI migration, as one trait; and what the
//! checks of those other than CCMs need.

pub mod component;
pub mod csi_migration;
pub mod image_credentials;
pub mod network_proxy;
