//! The Events by which the framework's lifecycle controller tells what it does (contract NODE-LIFE-16).

use super::known::{INSTANCES, MONITOR, known, sees_deletion};
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] =
    &[Check::must("NODE-LIFE-16.deleting", "an Event tells that a Node is deleted", MONITOR, |cx| {
        Box::pin(tells_of_a_deletion(cx))
    })
    .should()
    .in_calm()
    .of_the_framework()
    .needs(INSTANCES)];

async fn tells_of_a_deletion(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "a", Ready::False).await?;
    let events = node.events();
    sees_deletion(cx, &machine, &node).await?;
    let told = tells_by("Normal", "DeletingNode", "cloud-node-lifecycle-controller");
    events.becomes(told).within(cx.limits().event()).await
}
