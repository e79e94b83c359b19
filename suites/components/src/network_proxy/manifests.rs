//! The static part: the API server's configuration and the agents' manifests (contract ANP-01, -02, -09).

use harness_component_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("ANP-01", |cx| Box::pin(configuration_follows(cx, "ANP-01"))).without_a_cluster(),
    Check::of("ANP-02", |cx| Box::pin(configuration_follows(cx, "ANP-02"))).without_a_cluster(),
    Check::of("ANP-09", |cx| Box::pin(agents_can_boot(cx))).without_a_cluster(),
];

async fn configuration_follows(cx: &CheckCx, row: &str) -> Verdict {
    NetworkProxy::of(cx)?.configuration_follows(row)
}

async fn agents_can_boot(cx: &CheckCx) -> Verdict {
    NetworkProxy::of(cx)?.agents_can_boot()
}
