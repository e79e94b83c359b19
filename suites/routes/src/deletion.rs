//! Routes that belong to no Node, and routes that the CCM must not touch (contract ROUTE-04, -05).

use super::needs::ROUTES;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use suites_common::routed_node::{ccm_routes_others, prompt, routed, with_networks};

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-04.deleted-node", |cx| Box::pin(removes_routes_of_deleted_nodes(cx))).needs(ROUTES),
    Check::of("ROUTE-04.stray", |cx| Box::pin(removes_strays(cx))).on_routes().needs(ROUTES),
    Check::of("ROUTE-04.stale", |cx| Box::pin(removes_stale_routes(cx))).on_routes().needs(ROUTES),
    Check::of("ROUTE-04.black-hole", |cx| Box::pin(replaces_black_holes(cx))).on_routes().needs(ROUTES),
    Check::of("ROUTE-05", |cx| Box::pin(keeps_foreign_routes(cx))).on_routes().needs(ROUTES).takes(6),
];

async fn removes_routes_of_deleted_nodes(cx: &CheckCx) -> Verdict {
    let network = cx.pod_network(0)?;
    let (_, node, _) = routed(cx, "a", &network).await?;
    node.delete().await?;
    network.becomes(has_no_route()).within(cx.limits().route()).when("once its Node is gone").await
}

async fn removes_strays(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("no-node")).await?);
    network.is_routed(Some(&machine)).await?;
    prompt(cx).await?;
    network.becomes(has_no_route()).within(cx.limits().route()).when("as it has no Node").await
}

async fn removes_stale_routes(cx: &CheckCx) -> Verdict {
    let (network, other) = (cx.pod_network(0)?, cx.pod_network(1)?);
    let (machine, _, route) = routed(cx, "a", &network).await?;
    other.is_routed(Some(&machine)).await?;
    prompt(cx).await?;
    other.becomes(has_no_route()).within(cx.limits().route()).when("as its Node does not have it").await?;
    network.is(keeps_route(&route)).await
}

async fn replaces_black_holes(cx: &CheckCx) -> Verdict {
    let (network, unused, lost) = (cx.pod_network(0)?, cx.pod_network(1)?, cx.pod_network(2)?);
    let (gone, machine) = (cx.machine(machine("gone")).await?, cx.machine(machine("a")).await?);
    network.is_routed(None).await?;
    unused.is_routed(None).await?;
    lost.is_routed(Some(&gone)).await?;
    gone.delete().await?;
    cx.node(with_networks(&machine, &[&network])).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    leads.when("although it had a route without a target before").await?;
    for stray in [&unused, &lost] {
        let goes = stray.becomes(has_no_route()).within(cx.limits().route());
        goes.when("as its route leads nowhere and no Node has it").await?;
    }
    Ok(())
}

async fn keeps_foreign_routes(cx: &CheckCx) -> Verdict {
    let (gateway, ..) = routed(cx, "gateway", &cx.pod_network(0)?).await?;
    let machine = cx.machine(machine("no-node")).await?;
    let host = |written| cx.destination(&format!("{}/32", cx.own_address(written)));
    let mut foreign = vec![
        (host("192.0.2.240")?, Some(&machine)),
        (host("192.0.2.241")?, None),
        (host("192.0.2.242")?, Some(&gateway)),
    ];
    // Where the cloud rejects overlapping routes, such a route would block those of every Node.
    let around = if cx.cloud().has_nested_routes() { cx.around_pod_networks()? } else { None };
    foreign.extend(around.map(|around| (around, Some(&machine))));
    let mut put = Vec::new();
    for (network, to) in &foreign {
        put.push((network, network.is_routed(*to).await?));
    }
    prompt(cx).await?;
    let untouched = put.iter().map(|(network, route)| async move {
        let kept = network.keeps(keeps_route(route)).within(cx.limits().quiet_routes());
        kept.when("as it is not a pod network").await
    });
    try_join_all(untouched).await?;
    ccm_routes_others(cx).await?;
    try_join_all(put.iter().map(|(network, route)| network.is(keeps_route(route)))).await.map(drop)
}
