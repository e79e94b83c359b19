//! The checks of components besides CCMs.

pub mod csi_migration;
pub mod image_credentials;
pub mod network_proxy;
