//! The checks: one module per suite, each a table of [`harness_testkit::prelude::Check`] and their bodies.
//!
//! Suites never name a provider: what a CCM can do is a capability, what it is called is a profile. Bodies talk to the
//! subjects that [`harness_testkit::prelude::CheckCx`] gives them, and to nothing else.

pub mod authorization;
pub mod bootstrap;
pub mod csi_migration;
pub mod failover;
pub mod image_credentials;
pub mod lifecycle;
pub mod loadbalancer;
pub mod network_proxy;
pub mod operation;
pub mod population;
pub mod routes;
pub mod scalability;
pub mod soak;
pub mod taint_removal;

mod failures;
mod joining;
mod observing;

use harness_testkit::prelude::*;

/// Every suite, in the order of the report.
pub const ALL: &[Suite] = &[
    bootstrap::SUITE,
    taint_removal::SUITE,
    population::SUITE,
    lifecycle::SUITE,
    loadbalancer::SUITE,
    routes::SUITE,
    failover::SUITE,
    operation::SUITE,
    authorization::SUITE,
    scalability::SUITE,
    soak::SUITE,
    image_credentials::SUITE,
    network_proxy::SUITE,
    csi_migration::SUITE,
];

const _: () = assert_unique_ids(ALL);
