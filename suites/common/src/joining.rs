//! The first steps of most checks of Nodes (a machine exists in the cloud, its Node registers, the CCM
//! initialises it), and what a Node has to have in the end.

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;

/// Creates a machine in the cloud and registers its Node.
pub async fn registered<'a>(
    cx: &'a CheckCx,
    plan: MachinePlan,
) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    let machine = cx.machine(plan).await?;
    let node = cx.node(machine.node()).await?;
    Ok((machine, node))
}

/// Creates a machine in the cloud, registers its Node and waits until it is initialised.
pub async fn joined<'a>(cx: &'a CheckCx, plan: MachinePlan) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    let (machine, node) = registered(cx, plan).await?;
    node.becomes(initialised()).await?;
    Ok((machine, node))
}

/// Waits until the Node of another machine is initialised. This proves that the CCM works and leaves the
/// first Node alone.
pub async fn ccm_initialises_others(cx: &CheckCx) -> Result<(), CheckError> {
    let (_, witness) = registered(cx, machine("witness")).await?;
    witness.becomes(initialised()).when("while nothing prevents it").await?;
    Ok(())
}

/// Waits until the Node is initialised with everything that the cloud supplies, after an outage or once the
/// cloud has what it lacked. The back-off has grown with the outage, and with every change of the Node during
/// it (contract section 21).
pub async fn recovers(cx: &CheckCx, machine: &Machine<'_>, node: &Node<'_>, outage: Duration) -> Verdict {
    let recovery = node.becomes(initialised()).within(cx.limits().nodes_after(outage));
    let seen = recovery.when("without a restart, once the cloud answers again").await?;
    let claim = "has everything the cloud supplies after the outage";
    node.has_shown(&Some(seen), initialised_as(claim, &machine.as_reported()))?;
    let mut whole = node_with(&machine.instance().addresses, &machine.name());
    cx.in_reported_order(&mut whole, &[]);
    node.becomes(has_addresses(whole)).within(cx.limits().addresses_after_taint()).await
}

/// The addresses of a Node without a provided IP: those of the cloud, then the kubelet's host name.
pub fn node_with(cloud: &[Address], kubelet: &str) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = cloud.iter().map(|a| (a.kind.clone(), a.address.clone())).collect();
    list.push(("Hostname".to_owned(), kubelet.to_owned()));
    list
}

/// Matches a CCM that was denied something: it either ends, or does its work.
pub fn ends_or_works() -> Matcher<(Tried, Option<Arc<core::Node>>), bool> {
    let works = initialised();
    matcher("ends with an error, or works", move |(tried, node): &(Tried, Option<Arc<core::Node>>)| {
        match (tried.exit_code(), works.matches(node)) {
            (Some(0), _) => Observation::Impossible("that is not an error".to_owned()),
            (Some(_), _) => Observation::Matched(true),
            (None, Observation::Matched(_)) => Observation::Matched(false),
            (None, _) => Observation::Pending(String::new()),
        }
    })
    .expecting("its process ended with an exit code that is not 0, or a Node is initialised")
}
