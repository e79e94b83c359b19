//! The Events with which the framework's service controller reports its actions (contract SVC-CREATE-17, SVC-NODES-12,
//! SVC-DEL-10, SVC-ERR-01).

use super::needs::{LB, LB_TO_NODES, NODES_BEHIND_LB};
use super::nodes::{has_backend, kept_out};
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-17", |cx| Box::pin(tells_of_a_creation(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB),
    Check::of("SVC-NODES-12.updated", |cx| Box::pin(tells_of_an_update(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(NODES_BEHIND_LB),
    Check::of("SVC-NODES-12.failed", |cx| Box::pin(warns_of_a_failed_update(cx)))
        .by_calls()
        .in_quiet()
        .without_machines()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Faults]),
    Check::of("SVC-NODES-12.none", |cx| Box::pin(warns_of_no_nodes(cx))).needs(LB_TO_NODES).alone(),
    Check::of("SVC-DEL-10", |cx| Box::pin(tells_of_a_deletion(cx))).in_quiet().without_machines().needs(LB),
    Check::of("SVC-ERR-01.event", |cx| Box::pin(warns_of_a_failed_creation(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults]),
];

async fn tells_of_a_creation(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let lb = web.gets_published().await?;
    web.events().becomes(tells("Normal", "EnsuringLoadBalancer")).within(cx.limits().event()).await?;
    web.events().becomes(tells("Normal", "EnsuredLoadBalancer")).within(cx.limits().event()).await?;
    web.is(publishes(&lb)).await
}

async fn tells_of_an_update(cx: &CheckCx) -> Verdict {
    let (machine, node) = kept_out(cx, "admitted").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    node.label(L_EXCL, None).await?;
    web.balancer().becomes(has_backend(&machine)).await?;
    web.events().becomes(tells("Normal", "UpdatedLoadBalancer")).within(cx.limits().event()).await
}

async fn warns_of_a_failed_update(cx: &CheckCx) -> Verdict {
    let (machine, node) = kept_out(cx, "admitted").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let refusals = web.cloud().fails().to(&[Op::LbUpdate]).await?;
    node.label(L_EXCL, None).await?;
    refusals.hits_unless(1, web.balancer().is(has_backend(&machine))).await?;
    web.events().becomes(tells("Warning", "UpdateLoadBalancerFailed")).within(cx.limits().event()).await
}

async fn warns_of_no_nodes(cx: &CheckCx) -> Verdict {
    cx.condemn_all_nodes().await?;
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    web.rests().await?;
    web.wants_a_balancer().await?;
    web.events().becomes(tells("Warning", "UnAvailableLoadBalancer")).within(cx.limits().event()).await
}

async fn tells_of_a_deletion(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let events = web.events();
    web.delete().await?;
    events.becomes(tells("Normal", "DeletingLoadBalancer")).within(cx.limits().event()).await?;
    web.becomes(gone()).within(cx.limits().load_balancer()).await?;
    events.becomes(tells("Normal", "DeletedLoadBalancer")).within(cx.limits().event()).await
}

async fn warns_of_a_failed_creation(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let refusals = web.cloud().fails().to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    refusals.hits_unless(1, web.is_served()).await?;
    web.events().becomes(tells("Warning", "SyncLoadBalancerFailed")).within(cx.limits().event()).await
}
