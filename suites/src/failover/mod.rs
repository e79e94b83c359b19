//! Leader-election failover: one replica works, another takes over when it is gone, and never do two work at once
//! (contract HA).

mod busy;
mod crash;
mod cut_off;
mod flags;
mod in_flight;
mod leases;
mod needs;
mod order;
mod outage;
mod restart;
mod routes_taken_up;
mod steady;
mod step_down;
mod taken_up;
mod terminated;

pub(crate) use leases::unchanged;

use harness_testkit::prelude::*;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "leader-election-failover",
    proves: "one replica works, a standby takes over when it is gone, and never do two work at once",
    judges: Party::Ccm,
    tables: &[
        steady::CHECKS,
        crash::CHECKS,
        terminated::CHECKS,
        cut_off::CHECKS,
        in_flight::CHECKS,
        outage::CHECKS,
        leases::CHECKS,
        step_down::CHECKS,
        restart::CHECKS,
        taken_up::CHECKS,
        routes_taken_up::CHECKS,
        flags::CHECKS,
    ],
};
