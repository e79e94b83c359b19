//! Changes of a Node's addresses after its initialisation (contract NODE-ADDR-06 to -11).

use crate::taint_removal::{looked_at, no_controller_looked};
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use suites_common::failures::unless_it_lists;
use suites_common::joining::{joined, node_with};

const INSTANCES: &[Capability] = &[Capability::Instances];
/// An address that no machine has at first.
const OTHER_EXTERNAL: &str = "198.51.100.177";
const OTHER_INTERNAL: &str = "192.0.2.177";

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-ADDR-06", |cx| Box::pin(follows_changes(cx))).needs(INSTANCES).takes(10),
    Check::of("NODE-ADDR-07", |cx| Box::pin(follows_removals(cx))).needs(INSTANCES).takes(10),
    Check::of("NODE-ADDR-08.empty", |cx| Box::pin(keeps_addresses_when_there_are_none(cx)))
        .needs(INSTANCES)
        .takes(31),
    Check::of("NODE-ADDR-08.error", |cx| Box::pin(keeps_addresses_on_errors(cx)))
        .needs(INSTANCES)
        .with(&[Facility::Faults])
        .takes(31),
    Check::of("NODE-ADDR-09", |cx| Box::pin(writes_nothing_unchanged(cx))).needs(INSTANCES).takes(31),
    Check::of("NODE-ADDR-10", |cx| Box::pin(lists_addresses_once(cx))).needs(INSTANCES),
    Check::of("NODE-ADDR-11", |cx| Box::pin(keeps_addresses_when_the_provided_ip_goes(cx)))
        .needs(INSTANCES)
        .takes(31),
    Check::of("NODE-ADDR-14", |cx| Box::pin(costs_no_more_than_a_look(cx)))
        .by_calls()
        .needs(INSTANCES)
        .takes(41),
];

/// The addresses that a Node without a provided IP shows of its machine.
fn shown(cx: &CheckCx, machine: &Machine<'_>) -> Vec<(String, String)> {
    let instance = machine.instance();
    let mut whole = node_with(&instance.addresses, &instance.name);
    cx.in_reported_order(&mut whole, &[]);
    whole
}

/// Creates a machine and its initialised Node, which shows all addresses of the machine.
async fn addressed<'a>(cx: &'a CheckCx, suffix: &str) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    cx.addresses_are_refreshed_often()?;
    let (machine, node) = joined(cx, machine(suffix)).await?;
    node.becomes(has_addresses(shown(cx, &machine))).within(cx.limits().addresses_after_taint()).await?;
    Ok((machine, node))
}

async fn follows_changes(cx: &CheckCx) -> Verdict {
    let (ready, ready_node) = addressed(cx, "ready").await?;
    let (unready, unready_node) = addressed(cx, "unready").await?;
    unready_node.set_ready(Ready::False).await?;
    for machine in [&ready, &unready] {
        machine.change(|instance| renumber(&mut instance.addresses, "ExternalIP", OTHER_EXTERNAL)).await?;
    }
    for (machine, node) in [(&ready, &ready_node), (&unready, &unready_node)] {
        let changed =
            node.becomes(has_addresses(shown(cx, machine))).within(cx.limits().addresses_refreshed());
        changed.when("after its external address changed in the cloud").await?;
    }
    Ok(())
}

/// Replaces the machine's address of this type.
fn renumber(addresses: &mut [Address], kind: &str, new: &str) {
    addresses.iter_mut().filter(|a| a.kind == kind).for_each(|a| new.clone_into(&mut a.address));
}

async fn follows_removals(cx: &CheckCx) -> Verdict {
    let (machine, node) = addressed(cx, "a").await?;
    machine.change(|instance| instance.addresses.retain(|a| a.kind != "ExternalIP")).await?;
    let less = node.becomes(has_addresses(shown(cx, &machine))).within(cx.limits().addresses_refreshed());
    less.when("after its external address went from the cloud").await
}

async fn keeps_addresses_when_there_are_none(cx: &CheckCx) -> Verdict {
    let (machine, node) = addressed(cx, "a").await?;
    let before = shown(cx, &machine);
    machine.change(|instance| instance.addresses.clear()).await?;
    let kept = node.keeps(has_addresses(before)).within(cx.limits().quiet_addresses());
    let kept = kept.when("while the cloud lists none").await;
    // If the cloud reports the host name, it reports some name, and the Node has to have that one.
    let host_name = shown(cx, &machine);
    if kept.is_err() && cx.reports_host_names() && node.is(has_addresses(host_name)).await.is_ok() {
        let why = "it reports each machine's host name as an address, so it never reports none";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    kept
}

async fn keeps_addresses_on_errors(cx: &CheckCx) -> Verdict {
    let (machine, node) = addressed(cx, "a").await?;
    let before = shown(cx, &machine);
    let failing = [Effect::Status { status: 503, retry_after_s: None }];
    let fault = machine.cloud().meets("failing look-ups", &failing).to(&[Op::InstanceGet]).await?;
    machine.change(|instance| renumber(&mut instance.addresses, "ExternalIP", OTHER_EXTERNAL)).await?;
    let met = fault.becomes(met_by(1)).within(cx.limits().addresses_refreshed()).await;
    met.map_err(|stop| unless_it_lists(cx, stop))?;
    let kept = node.keeps(has_addresses(before)).within(cx.limits().quiet_addresses());
    kept.when("while its machine cannot be looked up").await
}

/// Creates a Node that shows two addresses of one type, in any order. Returns the Node and what it shows;
/// `None` if the cloud's machines never have two.
async fn of_two_alike(cx: &CheckCx) -> Result<Option<(Node<'_>, Vec<(String, String)>)>, CheckError> {
    let [one, two, public] = ["192.0.2.21", "192.0.2.22", "198.51.100.21"].map(|ip| cx.own_address(ip));
    let all = vec![address("InternalIP", &one), address("InternalIP", &two), address("ExternalIP", &public)];
    let (machine, node) = match joined(cx, machine("two").addresses(all)).await {
        Err(CheckError::NotObservable(_)) => return Ok(None),
        joined => joined?,
    };
    let sorted = |mut addresses: Vec<(String, String)>| {
        addresses.sort();
        addresses
    };
    let whole = sorted(shown(cx, &machine));
    let all_there = matcher("has all addresses of its machine", move |node: &Option<Arc<core::Node>>| {
        match node.as_ref().map(|node| addresses(node)) {
            Some(seen) if sorted(seen.clone()) == whole => Observation::Matched(seen),
            _ => Observation::Pending(String::new()),
        }
    });
    let before = node.becomes(all_there).within(cx.limits().addresses_after_taint()).await?;
    Ok(Some((node, before)))
}

async fn writes_nothing_unchanged(cx: &CheckCx) -> Verdict {
    let (machine, node) = addressed(cx, "a").await?;
    let mut nodes = vec![(node, shown(cx, &machine))];
    nodes.extend(of_two_alike(cx).await?);
    cx.record("two_of_a_type", nodes.len() > 1);
    let versions =
        nodes.iter().map(|(node, _)| Ok(node.history()?.len())).collect::<Result<Vec<_>, CheckError>>()?;
    try_join_all(nodes.iter().map(async |(node, before)| {
        node.keeps(has_addresses(before.clone())).within(cx.limits().quiet_addresses()).await
    }))
    .await?;
    // A change that was reverted at once is still a change.
    for ((node, before), versions) in nodes.iter().zip(versions) {
        let history = node.history()?;
        let other = history.iter().skip(versions).find(|version| addresses(&version.object) != *before);
        if let Some(version) = other {
            return Err(node.breaks(
                "the addresses are written only when they have changed",
                &show_addresses(before),
                &show_addresses(&addresses(&version.object)),
            ));
        }
    }
    Ok(())
}

async fn lists_addresses_once(cx: &CheckCx) -> Verdict {
    let twice = vec![
        address("InternalIP", "192.0.2.10"),
        address("InternalIP", "192.0.2.10"),
        address("ExternalIP", "198.51.100.10"),
    ];
    let (machine, node) = joined(cx, machine("a").addresses(twice)).await?;
    let mut once = shown(cx, &machine);
    once.dedup();
    let listed = node.becomes(has_addresses(once)).within(cx.limits().addresses_after_taint());
    listed.when("though the cloud lists one twice").await
}

/// Matches a Node with these addresses that is neither tainted nor deleted.
fn unharmed(wanted: Vec<(String, String)>) -> Matcher<Option<Arc<core::Node>>> {
    let expected = format!("a Node without the taint {T_UNINIT}, with {}", show_addresses(&wanted));
    holds("is as it was", move |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|n| !has_taint(n, T_UNINIT) && addresses(n) == wanted)
    })
    .expecting(expected)
}

/// The address that a kubelet provides: its machine's internal one, or another where the cloud has no internal ones.
fn provided_of(addresses: &[Address]) -> Option<Address> {
    let internal = addresses.iter().find(|address| address.kind == "InternalIP");
    internal.or_else(|| addresses.first()).cloned()
}

async fn keeps_addresses_when_the_provided_ip_goes(cx: &CheckCx) -> Verdict {
    cx.addresses_are_refreshed_often()?;
    let machine = cx.machine(machine("a")).await?;
    let instance = machine.instance();
    let provided = provided_of(&instance.addresses).ok_or_else(|| {
        CheckError::NotObservable("the cloud's API shows no address of a machine".to_owned())
    })?;
    let plan = machine.node().annotation(A_NODEIP, &provided.address);
    let node = cx.node(plan.taints(vec![taint("example.com/kept", "1", "NoSchedule"), uninitialized()]));
    let node = node.await?;
    // A client that removes a taint writes the whole list, so the uninitialized taint may be back for a moment.
    node.becomes(looked_at()).await.map_err(no_controller_looked)?;
    node.becomes(initialised()).await?;
    let mut before = node_with(&instance.addresses, &instance.name);
    cx.in_reported_order(&mut before, &[provided.address.as_str()]);
    node.becomes(has_addresses(before.clone())).within(cx.limits().addresses_after_taint()).await?;
    let other = if provided.kind == "InternalIP" { OTHER_INTERNAL } else { OTHER_EXTERNAL };
    machine.change(|instance| renumber(&mut instance.addresses, &provided.kind, other)).await?;
    let kept = node.keeps(unharmed(before)).within(cx.limits().quiet_addresses());
    kept.when("though the cloud no longer reports its provided IP").await
}

async fn costs_no_more_than_a_look(cx: &CheckCx) -> Verdict {
    // A change of a Node that is still tainted causes one more try. Of the two Nodes, the one with fewer
    // calls counts.
    let (_, node) = addressed(cx, "a").await?;
    let (_, other) = addressed(cx, "b").await?;
    let cost = node.calls().list().await?.len().min(other.calls().list().await?.len()).max(1);
    // A new Node makes work for other controllers, too: those of routes and load balancers look its machine up.
    let settled = node.keeps(present()).within(Limits::STATUS_PERIOD);
    settled.when("until what a new Node brings about is over").await?;
    let mark = cx.cloud().mark_now().await?;
    // The Node is Ready and unchanged: only the refresh has a reason to look its machine up.
    let window = cx.limits().quiet_addresses();
    node.calls().writes().since(mark).keeps(no_calls()).within(window).when("that change anything").await?;
    let calls = node.calls().since(mark).list().await?.len();
    let refreshes = 1 + window.as_secs() / Limits::STATUS_PERIOD.as_secs();
    let allowed = cost * usize::try_from(refreshes).unwrap_or(usize::MAX);
    cx.record("calls_in_three_periods", calls);
    if calls <= allowed {
        return Ok(());
    }
    let expected =
        format!("at most {cost} calls in each of {refreshes} refreshes, as its initialisation made");
    Err(node.breaks("a refresh costs no more than an initialisation", &expected, &format!("{calls} calls")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_provides_an_internal_address_where_there_is_one() {
        let [internal, external] =
            [address("InternalIP", "192.0.2.1"), address("ExternalIP", "198.51.100.1")];
        let of = |addresses: &[Address]| provided_of(addresses).map(|one| one.address);
        assert_eq!(of(&[external.clone(), internal]).as_deref(), Some("192.0.2.1"));
        assert_eq!(of(&[external]).as_deref(), Some("198.51.100.1"));
        assert_eq!(of(&[]), None);
    }
}
