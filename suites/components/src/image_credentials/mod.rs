//! Image credential providers of kubelets: executed directly as a kubelet would do it, and by a real kubelet
//! (contract CREDP).

mod answers;
mod exit_and_time;
mod kubelet;
mod scope;

use harness_component_testkit::prelude::*;

/// The suite `image-credentials`.
pub const SUITE: Suite = Suite {
    name: "image-credentials",
    proves: "an image credential provider answers kubelets in time and in the form that they expect, and protects its secrets",
    judges: Party::ImageCredentials,
    tables: &[answers::CHECKS, scope::CHECKS, exit_and_time::CHECKS, kubelet::CHECKS],
};
