//! Address and label population: a Node shows what the cloud reports about its machine (contract NODE-ADDR,
//! NODE-LBL).

mod addresses;
mod info;
mod labels;
mod reachability;
mod refresh;
mod repair;

use harness_testkit::prelude::*;

/// The suite of address and label population.
pub const SUITE: Suite = Suite {
    name: "address-and-label-population",
    proves: "addresses, zone, region and instance type from the cloud appear on the Node, and stay correct",
    judges: Party::Ccm,
    tables: &[
        &addresses::CHECKS,
        refresh::CHECKS,
        labels::CHECKS,
        repair::CHECKS,
        reachability::CHECKS,
        info::CHECKS,
    ],
};
