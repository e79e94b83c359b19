//! Clusters in this process: an adapter for the crate `embedded-cluster`. Needs neither Docker nor privileges.

mod backend;
mod survey;
mod wanted;

pub(super) use backend::BACKEND;
pub use backend::CLOUD_NAME;
