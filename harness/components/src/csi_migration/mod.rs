//! In-tree volumes and the drivers to which they were migrated, as data (KEP-625). Independent of clusters.

mod moved;
mod vectors;

pub use moved::AZURE_SECRET;
pub use moved::{MIGRATED_PLUGINS, MIGRATED_TO, Moved, PROVISIONED_BY, STORAGE_PROVISIONER, ZONE, moved};
pub use vectors::{Place, Vector, vectors};
