//! Deployments, ReplicaSets and DaemonSets.

mod daemon;
mod daemon_set;
mod deployment;
mod deployment_status;
mod replica_set;
mod rollout;
mod template;

use std::sync::Arc;

use crate::world::World;

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<World>) {
    deployment::start(world);
    replica_set::start(world);
    daemon_set::start(world);
}
