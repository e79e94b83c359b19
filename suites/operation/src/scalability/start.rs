//! The cost of a start on a cluster that has Services and Nodes (SCALE-06).

use harness_testkit::prelude::*;
use serde_json::json;

pub(super) const CHECKS: &[Check] = &[Check::of("SCALE-06", |cx| Box::pin(looks_once(cx)))
    .needs(&[Capability::LoadBalancer, Capability::LeaderElection, Capability::NodeTargets])
    .with(&[Facility::ProcessControl])
    .at_the_crash()
    .takes(10)];

const SERVICES: usize = 10;
const NODES: usize = 20;
/// One ensure, one update of backends, and one more of either.
const TIMES: usize = 3;

/// The number of calls for one look at a load balancer that is already correct.
async fn price_of_a_look(cx: &CheckCx, web: &Service<'_>) -> Result<usize, CheckError> {
    web.rests().await?;
    let mark = cx.cloud().mark_now().await?;
    web.patch(&json!({"metadata": {"annotations": {"example.com/poked": "once"}}})).await?;
    let calls = web.calls().since(mark);
    calls.becomes(some_calls()).within(cx.limits().service_after(0)).when("after an edit").await?;
    web.rests().await?;
    Ok(calls.list().await?.len())
}

async fn looks_once(cx: &CheckCx) -> Verdict {
    // Each new Node is one more backend of every load balancer.
    cx.crash_is_near().await?;
    for number in 0..NODES {
        let machine = cx.machine(machine(&format!("backend-{number}"))).await?;
        cx.node(machine.initialised_node().backend()).await?;
    }
    let mut services = Vec::new();
    for number in 0..SERVICES {
        services
            .push(cx.service(load_balancer(&format!("web-{number}")).port(80)).await?.provisioned().await?);
    }
    let price = price_of_a_look(cx, &services[0]).await?;
    let Crash { transitions, mark, .. } = cx.leader_crash().await?;
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
    let mut most = 0;
    for web in &services {
        let calls = web.calls().since(mark);
        calls.becomes(some_calls()).within(cx.limits().service_after(1)).when("by the new leader").await?;
        web.rests().await?;
        most = most.max(calls.list().await?.len());
    }
    cx.record(
        "calls",
        format!("{price} for one look, at most {most} about a Service at the start with {NODES} Nodes"),
    );
    if most <= TIMES * price {
        return Ok(());
    }
    let expected =
        format!("at most {} calls about a load balancer, {TIMES} times what a look costs", TIMES * price);
    Err(cx.cloud().breaks(
        "a start costs a look at each load balancer",
        &expected,
        &format!("{most} calls about one"),
    ))
}
