//! The events that make a CCM reconcile routes: recorded, never failed (contract ROUTE-13).

use super::needs::ROUTES;
use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::routed_node::routed;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("ROUTE-13", |cx| Box::pin(notes_what_prompts(cx)))
    .by_calls()
    .needs(ROUTES)
    .alone()
    .takes(20)];

/// For how long nothing changes: longer than the shortest pause of a CCM that is prompted by Nodes.
const REST: Duration = Duration::from_secs(12);

async fn notes_what_prompts(cx: &CheckCx) -> Verdict {
    let began = Instant::now();
    routed(cx, "a", &cx.pod_network(0)?).await?;
    cx.record("route_after_ms", began.elapsed().as_millis());
    let mark = cx.cloud().mark_now().await?;
    pause(REST).await;
    let lists = cx.cloud().calls().of(&[Op::RouteList]).since(mark).list().await?.len();
    cx.record("lists_at_rest", format!("{lists} in {} s", REST.as_secs()));
    Ok(())
}
