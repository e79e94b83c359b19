//! The Event with which the framework's node controller reports that it has initialised a Node (contract NODE-INIT-21).

use harness_testkit::prelude::*;
use suites_common::joining::joined;

pub(super) const CHECKS: &[Check] =
    &[Check::of("NODE-INIT-21", |cx| Box::pin(tells_of_an_initialisation(cx)))
        .in_quiet()
        .needs(&[Capability::Instances])];

async fn tells_of_an_initialisation(cx: &CheckCx) -> Verdict {
    let (_, node) = joined(cx, machine("a")).await?;
    let event = tells_by("Normal", "Synced", "cloud-node-controller");
    node.events().becomes(event).within(cx.limits().event()).await
}
