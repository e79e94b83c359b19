//! The API server's network proxy: its configuration, its protocol, and its behaviour when agents are lost
//! (contract ANP).

mod cluster;
mod manifests;
mod processes;

use harness_component_testkit::prelude::*;

/// The suite `network-proxy`.
pub const SUITE: Suite = Suite {
    name: "network-proxy",
    proves: "an API server reaches Nodes and Pods through a network proxy, and through nothing else",
    judges: Party::NetworkProxy,
    tables: &[manifests::CHECKS, processes::CHECKS, cluster::CHECKS],
};
