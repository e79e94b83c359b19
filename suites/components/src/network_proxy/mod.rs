//! The API server's network proxy: its configuration, its protocol, and what becomes of it when agents are lost (contract
//! ANP).

mod cluster;
mod manifests;
mod processes;

use harness_testkit::prelude::*;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "network-proxy",
    proves: "an API server reaches Nodes and Pods through a network proxy, and through nothing else",
    judges: Party::NetworkProxy,
    tables: &[manifests::CHECKS, processes::CHECKS, cluster::CHECKS],
};
