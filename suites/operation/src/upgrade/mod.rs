//! Upgrades (contract UPG). The CCM replaces an older release in a running cluster: a check installs the old release, lets it
//! work, and applies the manifests of the CCM under test over it. Or the cluster moves to a newer Kubernetes under the CCM.

mod cluster;
mod kept;
mod leadership;
mod leftovers;
mod load;
mod nodes;
mod part_way;
mod rollout;
mod unfinished;
mod works;

use harness_testkit::prelude::*;

/// The suite of upgrades.
pub const SUITE: Suite = Suite {
    name: "upgrade",
    proves: "the CCM replaces an older release and keeps what that release created, and it survives upgrades of the cluster",
    judges: Party::Ccm,
    tables: &[
        works::CHECKS,
        kept::CHECKS,
        nodes::CHECKS,
        leadership::CHECKS,
        leftovers::CHECKS,
        unfinished::CHECKS,
        load::CHECKS,
        part_way::CHECKS,
        cluster::CHECKS,
    ],
};
