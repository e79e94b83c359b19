//! Every pod network of a Node gets its route, and the Node's condition shows it (contract ROUTE-01, -02,
//! -09, -10).

use super::needs::{NODES_AND_ROUTES, ROUTES, ROUTES_OF_BOTH_FAMILIES};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use suites_common::joining::joined;
use suites_common::routed_node::{
    is_reachable, is_reachable_by_the_framework, is_unreachable, prompt, routed, with_networks,
};

pub(super) const CHECKS: &[Check] = &[
    Check::of("ROUTE-01", |cx| Box::pin(routes_to_nodes(cx))).needs(NODES_AND_ROUTES),
    Check::of("ROUTE-01.late", |cx| Box::pin(routes_to_late_networks(cx)))
        .needs(ROUTES)
        .with(&[Facility::PodCidrControl])
        .alone()
        .takes(6),
    Check::of("ROUTE-01.not-ready", |cx| Box::pin(routes_to_nodes_that_are_not_ready(cx))).needs(ROUTES),
    Check::of("ROUTE-02", |cx| Box::pin(says_that_routes_are_there(cx))).needs(ROUTES),
    Check::of("ROUTE-02.reason", |cx| Box::pin(takes_the_condition_over(cx))).needs(ROUTES),
    Check::of("ROUTE-09", |cx| Box::pin(routes_to_both_families(cx)))
        .needs(ROUTES_OF_BOTH_FAMILIES)
        .served_since(21, "Nodes with pod networks of both IP families"),
    Check::of("ROUTE-09.half", |cx| Box::pin(says_that_one_route_is_missing(cx)))
        .needs(ROUTES_OF_BOTH_FAMILIES)
        .with(&[Facility::Faults])
        .served_since(21, "Nodes with pod networks of both IP families"),
    Check::of("ROUTE-10", |cx| Box::pin(follows_addresses(cx))).needs(NODES_AND_ROUTES).takes(18),
];

/// Matches a Node to which the cluster has assigned pod networks; returns them.
fn has_pod_networks() -> Matcher<Option<Arc<core::Node>>, Vec<String>> {
    matcher("gets its pod networks", |node: &Option<Arc<core::Node>>| {
        match node.as_ref().map(|node| pod_cidrs(node)).unwrap_or_default() {
            none if none.is_empty() => Observation::Pending("spec.podCIDRs is empty".to_owned()),
            cidrs => Observation::Matched(cidrs),
        }
    })
    .expecting("spec.podCIDRs, by the controller manager of the cluster")
}

/// When the second Node joins, the CCM has made routes before.
async fn routes_to_nodes(cx: &CheckCx) -> Verdict {
    for suffix in ["a", "later"] {
        let (machine, node) = joined(cx, machine(suffix)).await?;
        for cidr in node.becomes(has_pod_networks()).await? {
            let network = cx.destination(&cidr)?;
            network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
        }
    }
    Ok(())
}

/// How long a CCM may take to get the event about a Node and to act on it.
const SETTLES: Duration = Duration::from_secs(2);

async fn routes_to_late_networks(cx: &CheckCx) -> Verdict {
    cx.pod_networks_are_withheld().await?;
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let node = cx.node(with_networks(&machine, &[])).await?;
    // Whatever the Node causes when it joins is over by then.
    node.keeps(present())
        .within(cx.limits().route_period() + SETTLES)
        .when("before it has a pod network")
        .await?;
    node.patch(&json!({"spec": {"podCIDR": network.cidr(), "podCIDRs": [network.cidr()]}})).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    leads.when("once its Node has it").await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once its route is there").await
}

async fn routes_to_nodes_that_are_not_ready(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    cx.node(with_networks(&machine, &[&network]).ready(Ready::False)).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    leads.when("though that is not Ready").await.map(drop)
}

async fn says_that_routes_are_there(cx: &CheckCx) -> Verdict {
    let (_, node, _) = routed(cx, "a", &cx.pod_network(0)?).await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once its route is there").await
}

async fn takes_the_condition_over(cx: &CheckCx) -> Verdict {
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    let plan = with_networks(&machine, &[&network]).condition(C_NET, "False", "SomebodyElse");
    let node = cx.node(plan).await?;
    network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    node.becomes(is_reachable_by_the_framework()).within(cx.limits().route()).await
}

async fn routes_to_both_families(cx: &CheckCx) -> Verdict {
    let (networks, machine) = (cx.pod_networks_of_both_families()?, cx.machine(machine("a")).await?);
    let all: Vec<_> = networks.iter().collect();
    let node = cx.node(with_networks(&machine, &all)).await?;
    for network in &networks {
        network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    }
    node.becomes(is_reachable()).within(cx.limits().route()).when("once both its routes are there").await
}

async fn says_that_one_route_is_missing(cx: &CheckCx) -> Verdict {
    let (networks, machine) = (cx.pod_networks_of_both_families()?, cx.machine(machine("a")).await?);
    let [made, refused] = networks.as_slice() else {
        return Err(CheckError::NotObservable(
            "--cluster-cidr of the CCM names more than two networks".to_owned(),
        ));
    };
    let fault = refused.cloud().answers(503).to(&[Op::RouteCreate]).await?;
    let node = cx.node(with_networks(&machine, &[made, refused])).await?;
    made.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    let said = node.becomes(is_unreachable()).within(cx.limits().route());
    said.when("while one of its two routes cannot be made").await?;
    node.keeps(is_unreachable()).within(cx.limits().route_period()).when("while that lasts").await?;
    fault.clear().await?;
    prompt(cx).await?;
    refused.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    node.becomes(is_reachable()).within(cx.limits().route()).when("once both its routes are there").await
}

async fn follows_addresses(cx: &CheckCx) -> Verdict {
    cx.addresses_are_refreshed_often()?;
    let network = cx.pod_network(0)?;
    let (machine, node, before) = routed(cx, "a", &network).await?;
    let other = cx.own_address("192.0.2.99");
    let (moved, address) = (other.clone(), other.clone());
    let internal = |address: &&mut Address| address.kind == "InternalIP";
    machine
        .change(move |instance| {
            instance.addresses.iter_mut().filter(internal).for_each(|a| a.address.clone_from(&moved));
        })
        .await?;
    let has_moved = holds("gets its machine's new address", move |node: &Option<Arc<core::Node>>| {
        let now = node.as_ref().map(|node| addresses(node)).unwrap_or_default();
        now.contains(&("InternalIP".to_owned(), address.clone()))
    });
    node.becomes(has_moved.expecting(other)).within(cx.limits().addresses_refreshed()).await?;
    prompt(cx).await?;
    // Time for another controller to replace the route.
    network.keeps(holds("has a route or none", |_: &Vec<Route>| true)).within(cx.limits().route()).await?;
    let leads = network.becomes(leads_to(&machine.instance())).within(cx.limits().route());
    let now = leads.when("though its address has changed").await?;
    cx.record("replaced", now.id != before.id);
    Ok(())
}
