//! What checks of leader election need.

use harness_testkit::prelude::*;

/// It elects leaders, and initialises Nodes.
pub(super) const ELECTION: &[Capability] = &[Capability::LeaderElection, Capability::Instances];
/// It does so, and provisions load balancers.
pub(super) const ELECTION_AND_LB: &[Capability] =
    &[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer];
/// It elects leaders, and provisions load balancers.
pub(super) const LB_ELECTION: &[Capability] = &[Capability::LoadBalancer, Capability::LeaderElection];
/// It elects leaders, and programs routes.
pub(super) const ELECTION_AND_ROUTES: &[Capability] = &[Capability::LeaderElection, Capability::Routes];
/// Its process can be killed.
pub(super) const KILL: &[Facility] = &[Facility::ProcessControl];
