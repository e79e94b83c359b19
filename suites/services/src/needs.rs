//! The capabilities that checks of load balancers need, and versions of the framework.

use harness_testkit::prelude::*;

/// The CCM provisions load balancers.
pub(super) const LB: &[Capability] = &[Capability::LoadBalancer];
/// The CCM provisions load balancers with source ranges.
pub(super) const RANGES: &[Capability] = &[Capability::LoadBalancer, Capability::SourceRanges];
/// The CCM provisions load balancers for UDP.
pub(super) const LB_UDP: &[Capability] = &[Capability::LoadBalancer, Capability::Udp];
/// The CCM provisions load balancers for SCTP.
pub(super) const LB_SCTP: &[Capability] = &[Capability::LoadBalancer, Capability::Sctp];
/// The CCM provisions load balancers that send traffic to Nodes.
pub(super) const LB_TO_NODES: &[Capability] = &[Capability::LoadBalancer, Capability::NodeTargets];
/// The CCM provisions load balancers that send traffic to Nodes, and it initialises Nodes.
pub(super) const NODES_BEHIND_LB: &[Capability] =
    &[Capability::LoadBalancer, Capability::NodeTargets, Capability::Instances];

/// A finalizer of another client.
pub(super) const FOREIGN: &str = "example.com/foreign";
