//! Leader-election failover: one replica works, another takes over when it is gone, and never do two work at once
//! (contract HA).

mod crash;
mod order;
mod restart;
mod steady;
mod step_down;

use harness::check::{Capability, Facility};
use harness::cx::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "leader-election-failover",
    proves: "one replica works, a standby takes over when it is gone, and never do two work at once",
    tables: &[steady::CHECKS, crash::CHECKS, step_down::CHECKS, restart::CHECKS],
};

const ELECTION: &[Capability] = &[Capability::LeaderElection, Capability::Instances];
const ELECTION_AND_LB: &[Capability] =
    &[Capability::LeaderElection, Capability::Instances, Capability::LoadBalancer];
const KILL: &[Facility] = &[Facility::ProcessControl];
