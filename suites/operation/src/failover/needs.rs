//! The capabilities and facilities that checks of leader election need.

use harness_testkit::prelude::*;

/// The CCM elects leaders and initialises Nodes.
pub(super) const ELECTION: &[Capability] = &[Capability::LeaderElection, Capability::Instances];
/// The CCM elects leaders, initialises Nodes and provisions load balancers.
pub(super) const ELECTION_AND_LB: &[Capability] =
    &[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer];
/// The CCM elects leaders and provisions load balancers.
pub(super) const LB_ELECTION: &[Capability] = &[Capability::LoadBalancer, Capability::LeaderElection];
/// The CCM elects leaders and programs routes.
pub(super) const ELECTION_AND_ROUTES: &[Capability] = &[Capability::LeaderElection, Capability::Routes];
/// The CCM's process can be killed.
pub(super) const KILL: &[Facility] = &[Facility::ProcessControl];
