//! The cost of a CCM: calls to the cloud for each Node and Service, requests to the API server (contract SCALE).

mod api_server;
mod nodes;
mod rate_limited;
mod start;

use harness_testkit::prelude::*;

/// The suite of scalability.
pub const SUITE: Suite = Suite {
    name: "scalability",
    proves: "calls to the cloud grow no faster than the number of Nodes and Services, and the API server is not flooded",
    judges: Party::Ccm,
    tables: &[nodes::CHECKS, rate_limited::CHECKS, start::CHECKS, api_server::CHECKS],
};
