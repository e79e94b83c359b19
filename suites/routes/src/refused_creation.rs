//! Routes that the cloud refuses to create (contract ROUTE-03).

use super::needs::ROUTES;
use harness_testkit::prelude::*;
use suites_common::routed_node::{
    is_not_said_to_be_reachable, is_reachable, is_settled, is_unreachable, is_unreachable_by_the_framework,
    prompt, with_networks,
};

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-03.refused", |cx| Box::pin(reports_a_missing_route(cx)))
        .needs(ROUTES)
        .with(&[Facility::Faults]),
    Check::of("ROUTE-03.reason", |cx| Box::pin(says_why(cx))).needs(ROUTES).with(&[Facility::Faults]),
    Check::of("ROUTE-03.event", |cx| Box::pin(tells_users(cx))).needs(ROUTES).with(&[Facility::Faults]),
    Check::of("ROUTE-03.retried", |cx| Box::pin(tries_again(cx))).needs(ROUTES).with(&[Facility::Faults]),
    Check::of("ROUTE-03.unprompted", |cx| Box::pin(tries_again_by_itself(cx, 503)))
        .needs(ROUTES)
        .with(&[Facility::Faults])
        .alone()
        .takes(8),
    Check::of("ROUTE-03.locked", |cx| Box::pin(tries_again_by_itself(cx, 423)))
        .needs(ROUTES)
        .with(&[Facility::Faults])
        .alone()
        .takes(7),
    Check::of("ROUTE-03.held", |cx| Box::pin(says_nothing_before(cx)))
        .needs(ROUTES)
        .with(&[Facility::Barriers])
        .holds_up_a_loop()
        .takes(5),
];

/// A Node whose route the cloud refuses to create, after the CCM has tried.
struct Refused<'a> {
    network: Destination<'a>,
    machine: Machine<'a>,
    node: Node<'a>,
    fault: Fault<'a>,
}

async fn refused(cx: &CheckCx) -> Result<Refused<'_>, CheckError> {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let fault = network.cloud().answers(503).to(&[Op::RouteCreate]).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    is_met(cx, &fault, &network).await?;
    Ok(Refused { network, machine, node, fault })
}

/// A call for a route to that network meets the fault; not observable if the network gets one without such a call.
pub(super) async fn is_met(cx: &CheckCx, fault: &Fault<'_>, network: &Destination<'_>) -> Verdict {
    let met = fault.becomes(met_by(1)).within(cx.limits().route()).await;
    let some = holds("has a route", |routes: &Vec<Route>| !routes.is_empty());
    fault.unless_needless(met.map(drop), network.is(some)).await
}

async fn reports_a_missing_route(cx: &CheckCx) -> Verdict {
    let Refused { node, .. } = refused(cx).await?;
    let said = node.becomes(is_unreachable()).within(cx.limits().route());
    said.when("while no route to it can be made").await?;
    node.keeps(is_unreachable()).within(cx.limits().route_period()).when("while that lasts").await
}

async fn says_why(cx: &CheckCx) -> Verdict {
    let Refused { node, .. } = refused(cx).await?;
    node.becomes(is_unreachable_by_the_framework()).within(cx.limits().route()).await
}

async fn tells_users(cx: &CheckCx) -> Verdict {
    let Refused { node, .. } = refused(cx).await?;
    node.events()
        .becomes(tells("Warning", "FailedToCreateRoute"))
        .within(cx.limits().event())
        .when("while no route to it can be made")
        .await
}

async fn tries_again(cx: &CheckCx) -> Verdict {
    let Refused { network, machine, node, fault } = refused(cx).await?;
    node.becomes(is_unreachable()).within(cx.limits().route()).await?;
    fault.clear().await?;
    prompt(cx).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    leads.when("once it can be made").await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once its route is there").await
}

async fn tries_again_by_itself(cx: &CheckCx, status: u16) -> Verdict {
    is_settled(cx).await?;
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let fault = network.cloud().answers(status).to(&[Op::RouteCreate]).times(1).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    is_met(cx, &fault, &network).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    leads.when("after one refusal, though no Node changes").await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once its route is there").await
}

async fn says_nothing_before(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let creation = network.cloud().holds(&[Op::RouteCreate]).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    creation.becomes(holds("holds a call", |waiting: &u64| *waiting > 0)).within(cx.limits().route()).await?;
    node.keeps(is_not_said_to_be_reachable()).when("while its route is being made").await?;
    creation.release().await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once its route is there").await
}
