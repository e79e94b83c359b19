//! What is written: the API server's configuration, and the agents' manifests (contract ANP-01, -02, -09).

use super::sources::{API, MODEL, SELECTOR};
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::must("ANP-01", "an API server decodes its egress configuration", SELECTOR, |cx| {
        Box::pin(configuration_follows(cx, "ANP-01"))
    })
    .apart(),
    Check::must("ANP-02", "each protocol has the transport that it goes over", API, |cx| {
        Box::pin(configuration_follows(cx, "ANP-02"))
    })
    .apart(),
    Check::must("ANP-09", "agents run on Nodes that are not initialised", MODEL, |cx| {
        Box::pin(agents_can_boot(cx))
    })
    .should()
    .apart(),
];

async fn configuration_follows(cx: &CheckCx, row: &str) -> Verdict {
    cx.network_proxy()?.configuration_follows(row)
}

async fn agents_can_boot(cx: &CheckCx) -> Verdict {
    cx.network_proxy()?.agents_can_boot()
}
