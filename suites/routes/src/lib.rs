//! Routes: the cloud's network leads to the Pods of every Node, and to nothing that belongs to no Node
//! (contract ROUTE).

mod at_once;
mod cost;
mod creation;
mod deletion;
mod failed_lists;
mod info;
mod needs;
mod network_condition;
mod refused_creation;
mod switched_off;

use harness_testkit::prelude::*;

/// The suite of routes.
pub const SUITE: Suite = Suite {
    name: "routes",
    proves: "each pod network of a Node has one route, the Node reports it, and foreign routes are not touched",
    judges: Party::Ccm,
    tables: &[
        creation::CHECKS,
        refused_creation::CHECKS,
        network_condition::CHECKS,
        deletion::CHECKS,
        failed_lists::CHECKS,
        at_once::CHECKS,
        cost::CHECKS,
        switched_off::CHECKS,
        info::CHECKS,
    ],
};
