//! What checks of load balancers need.

use harness::check::Capability;

/// It provisions load balancers.
pub(super) const LB: &[Capability] = &[Capability::LoadBalancer];
/// It does so, UDP included.
pub(super) const LB_UDP: &[Capability] = &[Capability::LoadBalancer, Capability::Udp];
/// It does so, and initialises Nodes.
pub(super) const LB_AND_NODES: &[Capability] = &[Capability::LoadBalancer, Capability::Instances];
