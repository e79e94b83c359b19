//! Routes that are switched off, or a CCM without pod networks to make routes for (contract ROUTE-11, -12).

use harness_testkit::prelude::*;
use suites_common::routed_node::says_nothing_of_its_network;

const NEEDS: &[Capability] = &[Capability::Routes, Capability::Instances, Capability::FrameworkFlags];

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-11", |cx| Box::pin(leaves_routes_alone(cx)))
        .by_calls()
        .needs(NEEDS)
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster()
        .takes(8),
    Check::of("ROUTE-12", |cx| Box::pin(ends_without_networks(cx)))
        .needs(NEEDS)
        .of_the_cloud(&[])
        .with(&[Facility::CcmControl])
        .on_a_fresh_cluster(),
];

async fn leaves_routes_alone(cx: &CheckCx) -> Verdict {
    let before = cx.cloud().mark_now().await?;
    let alone = cx.ccm_alone(&["--configure-cloud-routes=false"]).await?;
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let node = cx.node(machine.node().pod_cidrs(&[&network.cidr()])).await?;
    let initialised = node.becomes(initialised()).within(cx.limits().start());
    alone.while_it_runs(initialised.when("by the controllers that are left")).await?;
    // A provider may look at its network once when it starts.
    let calls = cx.cloud().calls().of(&[Op::RouteList, Op::RouteCreate, Op::RouteDelete]);
    let (started, calls) = (calls.clone().writes().since(before), calls.since(cx.cloud().mark_now().await?));
    let all = (&calls, &node);
    let quiet = all.keeps(both(no_calls(), says_nothing_of_its_network())).within(cx.limits().quiet_routes());
    quiet.when("about routes, though a Node has a pod network").await?;
    started.is(no_calls()).await?;
    network.is(has_no_route()).await
}

/// The framework detects this once it leads, because that is when it starts its controllers.
async fn ends_without_networks(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_alone(&["--cluster-cidr="]).await?;
    let ended = alone.becomes(has_ended()).within(cx.limits().start()).await;
    alone.explained(ended).await
}
