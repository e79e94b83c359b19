//! LoadBalancer provisioning: Services of type LoadBalancer get a load balancer in the cloud, it follows
//! their changes, and nothing of it is left when they are deleted (contract SVC).

mod at_most_one;
mod continuity;
mod create;
mod delete;
mod deleted_services;
mod edits;
mod eligibility;
mod elsewhere;
mod events;
mod failed_actions;
mod idle;
mod impossible;
mod info;
mod interrupted_deletion;
mod matrix_nodes;
mod needs;
mod node_updates;
mod nodes;
mod noise;
mod pacing;
mod parallel;
mod port_parts;
mod retry;
mod reversed;
mod step_fails;
mod update;
mod variants;
mod vendor_annotations;

use harness_testkit::prelude::*;

/// The suite of load balancers.
pub const SUITE: Suite = Suite {
    name: "loadbalancer-provisioning",
    proves: "a Service of type LoadBalancer gets exactly one load balancer, which follows it and is deleted with it",
    judges: Party::Ccm,
    tables: &[
        eligibility::CHECKS,
        create::CHECKS,
        variants::CHECKS,
        at_most_one::CHECKS,
        retry::CHECKS,
        failed_actions::CHECKS,
        &update::FOLLOWS,
        &update::KEEPS,
        update::CHECKS,
        reversed::CHECKS,
        edits::CHECKS,
        continuity::CHECKS,
        &port_parts::CHECKS,
        vendor_annotations::CHECKS,
        nodes::CHECKS,
        node_updates::CHECKS,
        idle::CHECKS,
        deleted_services::CHECKS,
        noise::CHECKS,
        delete::CHECKS,
        interrupted_deletion::CHECKS,
        impossible::CHECKS,
        &matrix_nodes::CELLS,
        matrix_nodes::CHECKS,
        step_fails::CHECKS,
        elsewhere::CHECKS,
        parallel::CHECKS,
        info::CHECKS,
        events::CHECKS,
    ],
};
