//! The Events by which the framework's service controller tells users what it does (contract SVC-CREATE-17, SVC-NODES-12,
//! SVC-DEL-10, SVC-ERR-01).

use super::needs::{LB, LB_TO_NODES, NODES_BEHIND_LB, RESYNC};
use super::nodes::{has_backend, kept_out};
use harness_testkit::prelude::*;

const SC: &str = "k8s.io/cloud-provider service/controller.go";

pub(super) const CHECKS: &[Check] = &[
    Check::must(
        "SVC-CREATE-17",
        "Events tell that a load balancer is being ensured and that it is",
        SC,
        |cx| Box::pin(tells_of_a_creation(cx)),
    )
    .should()
    .in_calm()
    .of_the_framework()
    .without_machines()
    .needs(LB),
    Check::must("SVC-NODES-12.updated", "an Event tells that a load balancer has new backends", SC, |cx| {
        Box::pin(tells_of_an_update(cx))
    })
    .by_calls()
    .should()
    .in_calm()
    .of_the_framework()
    .without_machines()
    .needs(NODES_BEHIND_LB)
    .since(28, RESYNC, Before::NotJudged),
    Check::must("SVC-NODES-12.failed", "a warning tells that an update of backends failed", SC, |cx| {
        Box::pin(warns_of_a_failed_update(cx))
    })
    .by_calls()
    .should()
    .in_calm()
    .of_the_framework()
    .without_machines()
    .needs(NODES_BEHIND_LB)
    .since(28, RESYNC, Before::NotJudged)
    .with(&[Facility::Faults]),
    Check::must(
        "SVC-NODES-12.none",
        "a warning tells that there is no Node for a load balancer to use",
        SC,
        |cx| Box::pin(warns_of_no_nodes(cx)),
    )
    .should()
    .of_the_framework()
    .needs(LB_TO_NODES)
    .alone(),
    Check::must(
        "SVC-DEL-10",
        "Events tell that a load balancer is being deleted and that it is gone",
        SC,
        |cx| Box::pin(tells_of_a_deletion(cx)),
    )
    .should()
    .in_calm()
    .of_the_framework()
    .without_machines()
    .needs(LB),
    Check::must("SVC-ERR-01.event", "a warning tells that a load balancer could not be made", SC, |cx| {
        Box::pin(warns_of_a_failed_creation(cx))
    })
    .should()
    .in_calm()
    .of_the_framework()
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
    let (_, node) = kept_out(cx, "admitted").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let refusals = web.cloud().fails().to(&[Op::LbUpdate]).await?;
    node.label(L_EXCL, None).await?;
    refusals.hits(1).await?;
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
    refusals.hits(1).await?;
    web.events().becomes(tells("Warning", "SyncLoadBalancerFailed")).within(cx.limits().event()).await
}
