//! Volumes that moved to CSI: a cluster passes in-tree volumes to drivers as the translation library defines,
//! and stores them as they were written (contract CSIM). What a CCM may do with volumes is checked together
//! with its other rights.

mod annotations;
mod classes;
mod handles;
mod missing_driver;
mod stored_volumes;
mod topology;

use harness_component_testkit::prelude::*;

/// The suite `csi-migration`.
pub const SUITE: Suite = Suite {
    name: "csi-migration",
    proves: "a cluster hands in-tree volumes to the CSI drivers to which they were migrated, and stores them as they were written",
    judges: Party::CsiMigration,
    tables: &[
        annotations::CHECKS,
        stored_volumes::CHECKS,
        handles::CHECKS,
        topology::CHECKS,
        classes::CHECKS,
        missing_driver::CHECKS,
    ],
};
