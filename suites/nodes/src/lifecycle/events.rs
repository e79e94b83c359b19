//! The Events with which the framework's lifecycle controller reports its actions (contract NODE-LIFE-16).

use super::known_node::{INSTANCES, known, sees_deletion};
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] =
    &[Check::of("NODE-LIFE-16.deleting", |cx| Box::pin(tells_of_a_deletion(cx))).in_quiet().needs(INSTANCES)];

async fn tells_of_a_deletion(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "a", Ready::False).await?;
    let events = node.events();
    sees_deletion(cx, &machine, &node).await?;
    let event = tells_by("Normal", "DeletingNode", "cloud-node-lifecycle-controller");
    events.becomes(event).within(cx.limits().event()).await
}
