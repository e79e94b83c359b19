//! What happens to Nodes whose kubelets fall silent, and to the Pods on them.

mod eviction;
mod health;
mod orphans;
mod verdict;

use std::sync::Arc;

use crate::world::World;

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<World>) {
    health::start(world);
    eviction::start(world);
    orphans::start(world);
}
