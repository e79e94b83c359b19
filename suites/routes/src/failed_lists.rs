//! Correct routes stay, and what the CCM cannot see causes no change (contract ROUTE-06, -07).

use super::needs::{NODES_AND_ROUTES, ROUTES};
use futures::future::try_join;
use harness_testkit::prelude::*;
use std::future::IntoFuture;
use suites_common::routed_node::{
    ccm_routes_others, is_reachable, is_unreachable, prompt, routed, says_nothing_of_its_network,
    with_networks,
};

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-06", |cx| Box::pin(keeps_right_routes(cx))).by_calls().needs(ROUTES).takes(6),
    of_trouble(0),
    of_trouble(1),
    Check::of("ROUTE-07.machines", |cx| Box::pin(keeps_routes_to_machines_unseen(cx)))
        .by_calls()
        .needs(ROUTES)
        .with(&[Facility::Faults])
        .alone()
        .takes(12),
    Check::of("ROUTE-08", |cx| Box::pin(leaves_nodes_without_network_alone(cx)))
        .needs(ROUTES)
        .with(&[Facility::PodCidrControl])
        .alone()
        .takes(6),
    Check::of("ROUTE-08.targeted", |cx| Box::pin(tells_targeted_nodes(cx)))
        .on_routes()
        .needs(NODES_AND_ROUTES)
        .with(&[Facility::PodCidrControl])
        .alone(),
];

/// Matches an inventory in which no route leads to this machine.
fn leads_nowhere_near(machine: &Machine<'_>) -> Matcher<Inventory> {
    let id = machine.id();
    holds("has no route to it", move |held: &Inventory| {
        held.routes.iter().all(|route| route.target_instance.as_ref() != Some(&id))
    })
    .expecting(format!("no route to instance {}", machine.id()))
}

async fn leaves_nodes_without_network_alone(cx: &CheckCx) -> Verdict {
    cx.pod_networks_are_withheld().await?;
    let machine = cx.machine(machine("a")).await?;
    let node = cx.node(with_networks(&machine, &[])).await?;
    let silent = node.keeps(says_nothing_of_its_network()).within(cx.limits().quiet_routes());
    silent.when("as it has no pod network").await?;
    cx.cloud().is(leads_nowhere_near(&machine)).await?;
    ccm_routes_others(cx).await?;
    node.is(says_nothing_of_its_network()).await
}

/// How many times the route is created, at most. A CCM that caches which machines exist may take a route to a
/// new machine for a route to no machine, and remove it without a report.
const ROUNDS: usize = 3;

async fn tells_targeted_nodes(cx: &CheckCx) -> Verdict {
    cx.pod_networks_are_withheld().await?;
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let node = cx.node(machine.node().pod_cidrs(&[])).await?;
    node.becomes(initialised()).await?;
    let limit = cx.limits().route();
    let reported =
        || node.becomes(is_unreachable()).within(limit).when("as a route leads to it that it cannot have");
    let removed = || network.becomes(has_no_route()).within(limit);
    for _ in 1..ROUNDS {
        network.is_routed(Some(&machine)).await?;
        prompt(cx).await?;
        tokio::select! {
            biased;
            reported = reported().into_future() => {
                reported?;
                return removed().await;
            }
            removed = removed().into_future() => removed?,
        }
    }
    network.is_routed(Some(&machine)).await?;
    prompt(cx).await?;
    reported().await?;
    removed().await
}

async fn keeps_right_routes(cx: &CheckCx) -> Verdict {
    let network = cx.pod_network(0)?;
    let (_, node, route) = routed(cx, "a", &network).await?;
    node.becomes(is_reachable()).within(cx.limits().route()).await?;
    let mark = cx.cloud().mark_now().await?;
    prompt(cx).await?;
    let same = network.keeps(keeps_route(&route)).within(cx.limits().quiet_routes());
    same.when("while nothing changes").await?;
    let names = [route.id.clone(), format!("destination={}", network.cidr())];
    let touched = move |call: &Entry| call.resource.as_ref().is_some_and(|name| names.contains(name));
    let writes = cx.cloud().calls().of(&[Op::RouteCreate, Op::RouteDelete]).since(mark).that(touched);
    writes.is(no_calls()).await
}

/// A fault of lists of routes, and the claim that it causes no change.
struct Trouble {
    id: CheckId,
    /// The effects on the lists, one after the other; the last one stays.
    effects: &'static [Effect],
    from_page: u64,
    /// The circumstances, for the text of a failure.
    when: &'static str,
}

static TROUBLES: [Trouble; 2] = [
    Trouble {
        id: CheckId::new("ROUTE-07"),
        effects: &[Effect::Malformed, Effect::Status { status: 503, retry_after_s: None }],
        from_page: 1,
        when: "while routes cannot be listed",
    },
    Trouble {
        id: CheckId::of_claim("ROUTE-07", "failed-page"),
        effects: &[Effect::Status { status: 503, retry_after_s: None }],
        from_page: 2,
        when: "while lists of routes fail after their first page",
    },
];

const fn of_trouble(at: usize) -> Check {
    let Trouble { id, .. } = &TROUBLES[at];
    let check = Check::row(*id, |cx, at| Box::pin(changes_nothing(cx, &TROUBLES[at])), at);
    check.needs(ROUTES).by_calls().with(&[Facility::Faults, Facility::Settings]).alone().takes(12)
}

async fn changes_nothing(cx: &CheckCx, trouble: &Trouble) -> Verdict {
    let (cloud, network, later) = (cx.cloud(), cx.pod_network(0)?, cx.pod_network(1)?);
    let (_, node, route) = routed(cx, "a", &network).await?;
    node.becomes(is_reachable()).within(cx.limits().route()).await?;
    // Not earlier: a call that the CCM makes when it starts may be made only once.
    cloud.comes_in_pages_of(1).await?;
    let fault = cloud.anything().meets(trouble.when, trouble.effects).to(&[Op::RouteList]);
    let fault = fault.from_page(trouble.from_page).await?;
    let newcomer = cx.machine(machine("later")).await?;
    prompt(cx).await?;
    // A reconciliation that listed before the fault may still be running.
    fault.becomes(met_by(1)).within(cx.limits().route()).await.map_err(|stop| one_page(trouble, stop))?;
    let mark = cloud.mark_now().await?;
    let new = cx.node(with_networks(&newcomer, &[&later])).await?;
    let as_before = both(keeps_route(&route), is_reachable());
    let (both_of_them, window) = ((&network, &node), cx.limits().quiet_routes());
    let kept = both_of_them.keeps(as_before).within(window).when(trouble.when);
    let silent = new.keeps(says_nothing_of_its_network()).within(window).when(trouble.when);
    try_join(kept.into_future(), silent.into_future()).await?;
    later.is(has_no_route()).await?;
    cloud.calls().of(&[Op::RouteCreate, Op::RouteDelete]).since(mark).is(no_calls()).await?;
    cx.record("failed_lists", fault.read(ReadSource::Origin).await?);
    fault.clear().await?;
    prompt(cx).await?;
    let leads = later.becomes(leads_to(&newcomer.instance())).within(cx.limits().route());
    leads.when("once routes can be listed").await?;
    network.is(keeps_route(&route)).await?;
    ccm_routes_others(cx).await
}

/// A CCM that caches which machines exist reconciles once more after its cache has expired.
async fn keeps_routes_to_machines_unseen(cx: &CheckCx) -> Verdict {
    let (cloud, limits) = (cx.cloud(), cx.limits());
    let (first, second, later) = (cx.pod_network(0)?, cx.pod_network(1)?, cx.pod_network(2)?);
    let ((_, a, route), (_, b, younger)) = (routed(cx, "a", &first).await?, routed(cx, "b", &second).await?);
    for node in [&a, &b] {
        node.becomes(is_reachable()).within(limits.route()).await?;
    }
    let newcomer = cx.machine(machine("later")).await?;
    let effects = [Effect::Malformed, Effect::Status { status: 503, retry_after_s: None }];
    let fault = cloud.anything().meets("lists of machines that fail", &effects).to(&[Op::InstanceList]);
    let fault = fault.await?;
    let mark = cloud.mark_now().await?;
    cx.node(with_networks(&newcomer, &[&later])).await?;
    let rounds = match cx.route_trigger() {
        RouteTrigger::Period => 1,
        RouteTrigger::NodeChanges => 2,
    };
    let window = limits.quiet_routes().max(limits.instance_cache() + limits.route_period());
    for round in 0..rounds {
        if round > 0 {
            prompt(cx).await?;
        }
        let (of_a, of_b) = ((&first, &a), (&second, &b));
        let kept = of_a.keeps(both(keeps_route(&route), is_reachable())).within(window);
        let younger = of_b.keeps(both(keeps_route(&younger), is_reachable())).within(window);
        let when = "while machines cannot be listed";
        try_join(kept.when(when).into_future(), younger.when(when).into_future()).await?;
    }
    let ids = [route.id.clone(), younger.id.clone()];
    let theirs = move |call: &Entry| call.resource.as_ref().is_some_and(|name| ids.contains(name));
    cloud.calls().of(&[Op::RouteDelete]).since(mark).that(theirs).is(no_calls()).await?;
    cx.record("failed_lists", fault.read(ReadSource::Origin).await?);
    fault.clear().await?;
    prompt(cx).await?;
    let leads = later.becomes(leads_to(&newcomer.instance())).within(limits.route());
    leads.when("once machines can be listed").await.map(drop)
}

/// Explains why no call met a fault of later pages: the cloud returns all routes on one page.
fn one_page(trouble: &Trouble, stop: CheckError) -> CheckError {
    match (trouble.from_page, stop) {
        (2.., CheckError::Violation(_)) => {
            CheckError::NotObservable("the cloud's API shows all routes on one page".to_owned())
        }
        (_, stop) => stop,
    }
}
