//! LoadBalancer provisioning: Services of type LoadBalancer get a balancer in the cloud, it follows them, and nothing
//! of it is left when they go (contract SVC).

mod accepted;
mod continuity;
mod create;
mod delete;
mod edits;
mod eligible;
mod elsewhere;
mod forgotten;
mod idle;
mod impossible;
mod interrupted;
mod matrix_nodes;
mod needs;
mod node_updates;
mod nodes;
mod noise;
mod noted;
mod one;
mod pacing;
mod parallel;
mod port_parts;
mod retry;
mod reversed;
mod step_fails;
mod told;
mod update;
mod variants;

pub(crate) use eligible::left_alone;

use harness::check::Party;
use harness::cx::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "loadbalancer-provisioning",
    proves: "Services of type LoadBalancer get exactly one balancer, it follows them, and it goes with them",
    judges: Party::Ccm,
    tables: &[
        eligible::CHECKS,
        create::CHECKS,
        variants::CHECKS,
        one::CHECKS,
        retry::CHECKS,
        accepted::CHECKS,
        &update::FOLLOWS,
        &update::KEEPS,
        update::CHECKS,
        reversed::CHECKS,
        edits::CHECKS,
        continuity::CHECKS,
        &port_parts::CHECKS,
        nodes::CHECKS,
        node_updates::CHECKS,
        idle::CHECKS,
        forgotten::CHECKS,
        noise::CHECKS,
        delete::CHECKS,
        interrupted::CHECKS,
        impossible::CHECKS,
        &matrix_nodes::CELLS,
        matrix_nodes::CHECKS,
        step_fails::CHECKS,
        elsewhere::CHECKS,
        parallel::CHECKS,
        noted::CHECKS,
        told::CHECKS,
    ],
};
