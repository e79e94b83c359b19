//! What every cluster does in the background: namespaces, owners, addresses, the network.

mod cni;
mod dns;
mod endpoints;
mod garbage;
mod graph;
mod ipam;
mod namespaces;

use std::sync::Arc;

use crate::world::World;

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<World>) {
    cni::start(world);
    endpoints::start(world);
    garbage::start(world);
    ipam::start(world);
    namespaces::start(world);
}

/// Creates what a cluster of this kind is installed with.
pub(crate) async fn install(world: &Arc<World>) -> Result<(), kube::Error> {
    dns::install(world).await
}
