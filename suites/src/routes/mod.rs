//! Routes: the cloud's network leads to every Node's pods, and to nothing that is no Node's any more (contract ROUTE).

mod at_once;
mod cost;
mod kept;
mod made;
mod needs;
mod noted;
mod off;
mod refused;
mod routed;
mod said;
mod stale;

pub(crate) use routed::{is_reachable, routed, with_networks};

use harness_testkit::prelude::*;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "routes",
    proves: "each pod network of a Node has one route, Nodes say so, and nobody else's routes are touched",
    judges: Party::Ccm,
    tables: &[
        made::CHECKS,
        refused::CHECKS,
        said::CHECKS,
        stale::CHECKS,
        kept::CHECKS,
        at_once::CHECKS,
        cost::CHECKS,
        off::CHECKS,
        noted::CHECKS,
    ],
};
