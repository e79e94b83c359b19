//! In-tree volumes and the drivers that they moved to, as data (KEP-625). Knows no cluster.

mod moved;
mod vectors;

pub use moved::AZURE_SECRET;
pub use moved::{MIGRATED_PLUGINS, MIGRATED_TO, Moved, PROVISIONED_BY, STORAGE_PROVISIONER, ZONE, moved};
pub use vectors::{Place, Vector, vectors};
