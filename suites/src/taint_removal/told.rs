//! The Event by which the framework's node controller tells that it has initialised a Node (contract NODE-INIT-21).

use crate::joining::joined;
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[Check::must(
    "NODE-INIT-21",
    "an Event tells that a Node was initialised",
    "k8s.io/cloud-provider node_controller.go syncNode",
    |cx| Box::pin(tells_of_an_initialisation(cx)),
)
.should()
.in_calm()
.of_the_framework()
.needs(&[Capability::Instances])];

async fn tells_of_an_initialisation(cx: &CheckCx) -> Verdict {
    let (_, node) = joined(cx, machine("a")).await?;
    let told = tells_by("Normal", "Synced", "cloud-node-controller");
    node.events().becomes(told).within(cx.limits().event()).await
}
