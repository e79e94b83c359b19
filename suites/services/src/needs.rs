//! What checks of load balancers need.

use harness_testkit::prelude::*;

/// It provisions load balancers.
pub(super) const LB: &[Capability] = &[Capability::LoadBalancer];
/// It does so, and lets source ranges be restricted.
pub(super) const RANGES: &[Capability] = &[Capability::LoadBalancer, Capability::SourceRanges];
/// It does so, UDP included.
pub(super) const LB_UDP: &[Capability] = &[Capability::LoadBalancer, Capability::Udp];
/// It does so, SCTP included.
pub(super) const LB_SCTP: &[Capability] = &[Capability::LoadBalancer, Capability::Sctp];
/// It does so, and they send traffic to Nodes.
pub(super) const LB_TO_NODES: &[Capability] = &[Capability::LoadBalancer, Capability::NodeTargets];
/// Such ones, and it initialises Nodes.
pub(super) const NODES_BEHIND_LB: &[Capability] =
    &[Capability::LoadBalancer, Capability::NodeTargets, Capability::Instances];

/// What framework 1.28 brought.
pub(super) const RESYNC: &str = "a providerID that appears re-syncs load balancers";
/// What framework 1.27 brought.
pub(super) const STABLE: &str = "the stable node set";
/// A finalizer of somebody else's.
pub(super) const FOREIGN: &str = "example.com/foreign";
