//! All checks, suite by suite. The suites are in the crates `suites-*`, one for each area of the contract.
//!
//! Suites never name a provider: the abilities of a CCM are capabilities, and its names are in its profile.
//! The body of a check uses only the subjects that [`harness_testkit::prelude::CheckCx`] gives it.

use harness_testkit::prelude::*;
use suites_components::{csi_migration, image_credentials, network_proxy};
use suites_nodes::{lifecycle, population, taint_removal};
use suites_operation::{authorization, bootstrap, failover, operation, scalability, soak, upgrade};

/// Every suite, in the order of the report.
pub const ALL: &[Suite] = &[
    bootstrap::SUITE,
    taint_removal::SUITE,
    population::SUITE,
    lifecycle::SUITE,
    suites_services::SUITE,
    suites_routes::SUITE,
    failover::SUITE,
    upgrade::SUITE,
    operation::SUITE,
    authorization::SUITE,
    scalability::SUITE,
    soak::SUITE,
    image_credentials::SUITE,
    network_proxy::SUITE,
    csi_migration::SUITE,
];

const _: () = assert_unique_ids(ALL);
