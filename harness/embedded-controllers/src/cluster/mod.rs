//! The background work of every cluster: namespaces, owners, addresses, the network.

pub(crate) mod cni;
pub(crate) mod dns;
pub(crate) mod endpoints;
pub(crate) mod garbage;
mod graph;
pub(crate) mod ipam;
mod kinds;
pub(crate) mod namespaces;
pub(crate) mod protection;
pub(crate) mod roles;
pub(crate) mod ttl;
