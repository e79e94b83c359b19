//! A new leader continues the work on routes that the old one had begun to create or delete (contract HA-08).

use super::needs::ELECTION_AND_ROUTES;
use super::resumed_work::{crash_the_leader, has_a_leader};
use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::routed_node::{is_reachable, routed, with_networks};

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-08.route", |cx| Box::pin(finds_what_was_never_answered(cx)))
        .needs(ELECTION_AND_ROUTES)
        .with(&[Facility::ProcessControl, Facility::Faults])
        .at_the_crash()
        .takes(10),
    Check::of("HA-08.route-deletion", |cx| Box::pin(finishes_a_begun_deletion(cx)))
        .needs(ELECTION_AND_ROUTES)
        .with(&[Facility::ProcessControl, Facility::Faults])
        .at_the_crash()
        .takes(10),
];

/// For how long exactly one route has to exist.
const ONE: Duration = Duration::from_secs(3);

/// No creation of the route is answered while the old leader lives.
async fn finds_what_was_never_answered(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    cx.crash_is_near().await?;
    let unanswered = network.cloud().loses_the_answer().to(&[Op::RouteCreate]).await?;
    let node = cx.node(with_networks(&machine, &[&network])).await?;
    network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    let before = crash_the_leader(cx).await?;
    unanswered.clear().await?;
    has_a_leader(cx, before).await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("by the new leader").await?;
    network.keeps(leads_to(&machine.instance())).within(ONE).when("by the new leader").await.map(drop)
}

/// The cloud refuses to delete the route while the old leader lives.
async fn finishes_a_begun_deletion(cx: &CheckCx) -> Verdict {
    let network = cx.pod_network(0)?;
    let (_, node, _) = routed(cx, "a", &network).await?;
    cx.crash_is_near().await?;
    let refusals = network.cloud().answers(503).to(&[Op::RouteDelete]).await?;
    node.delete().await?;
    let met = refusals.becomes(met_by(1)).within(cx.limits().route()).await;
    refusals.unless_needless(met, network.is(has_no_route())).await?;
    let before = crash_the_leader(cx).await?;
    refusals.clear().await?;
    has_a_leader(cx, before).await?;
    network.becomes(has_no_route()).within(cx.limits().route()).when("by the new leader").await
}
