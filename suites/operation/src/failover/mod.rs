//! Failover with leader election: one replica works, another takes over when it is gone, and two never work
//! at the same time (contract HA).

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
mod resumed_routes;
mod resumed_work;
mod steady;
mod step_down;
mod termination;

pub(crate) use busy::{edits, in_order, time_to_take_up};
use harness_testkit::prelude::*;

/// The suite of failover.
pub const SUITE: Suite = Suite {
    name: "leader-election-failover",
    proves: "one replica works, a standby takes over when it is gone, and two never work at the same time",
    judges: Party::Ccm,
    tables: &[
        steady::CHECKS,
        crash::CHECKS,
        termination::CHECKS,
        cut_off::CHECKS,
        in_flight::CHECKS,
        outage::CHECKS,
        leases::CHECKS,
        step_down::CHECKS,
        restart::CHECKS,
        resumed_work::CHECKS,
        resumed_routes::CHECKS,
        flags::CHECKS,
    ],
};
