//! Matchers for Nodes.

use harness_clouds::Instance;
use harness_core::probe::{Matcher, Observation, holds, matcher};
use harness_session::k8s::{
    B_REGION, B_TYPE, B_ZONE, L_REGION, L_TYPE, L_ZONE, T_UNINIT, addresses, has_taint, label, provider_id,
    show_addresses,
};
use k8s_openapi::api::core::v1::Node;
use std::net::IpAddr;
use std::sync::Arc;

type MaybeNode = Option<Arc<Node>>;

/// The Node exists and is no longer uninitialised; returns it.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.machine(machine("a")).await?;
/// let node = cx.node(machine.node()).await?;
/// node.becomes(initialised()).await?;
/// # Ok(()) }
/// ```
pub fn initialised() -> Matcher<MaybeNode, Arc<Node>> {
    matcher("is initialised", |node: &MaybeNode| match node {
        Some(node) if !has_taint(node, T_UNINIT) => Observation::Matched(node.clone()),
        Some(_) => Observation::Pending(String::new()),
        None => Observation::Pending("no such Node".to_owned()),
    })
    .expecting(format!("a Node without the taint {T_UNINIT}"))
}

/// It has an address other than its host name.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(node: &Node<'_>) -> Verdict {
/// node.becomes(initialised()).await?;
/// node.becomes(addressed()).when("once it is initialised").await
/// # }
/// ```
pub fn addressed() -> Matcher<MaybeNode> {
    holds("has an address", |node: &MaybeNode| {
        node.iter().flat_map(|node| addresses(node)).any(|(kind, _)| kind != "Hostname")
    })
}

/// It still has the uninitialized taint and nothing from the cloud: no providerID, none of the labels, no address but a
/// host name.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.absent_machine(machine("a"));
/// let node = cx.node(machine.node()).await?;
/// node.keeps(untouched()).when("while the cloud does not know its machine").await
/// # }
/// ```
pub fn untouched() -> Matcher<MaybeNode> {
    const LABELS: [&str; 6] = [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE];
    matcher("is not changed", move |node: &MaybeNode| {
        let Some(node) = node else { return Observation::Pending("no such Node".to_owned()) };
        let mut given: Vec<String> = provider_id(node).map(|id| format!("providerID {id}")).into_iter().collect();
        given.extend(LABELS.iter().filter_map(|key| label(node, key).map(|value| format!("{key}={value}"))));
        let addressed: Vec<_> = addresses(node).into_iter().filter(|(kind, _)| kind != "Hostname").collect();
        given.extend((!addressed.is_empty()).then(|| show_addresses(&addressed)));
        match (has_taint(node, T_UNINIT), given.is_empty()) {
            (true, true) => Observation::Matched(()),
            (false, _) => Observation::Pending("the taint is gone".to_owned()),
            (true, false) => Observation::Pending(given.join(", ")),
        }
    })
    .expecting(format!(
        "a Node with the taint {T_UNINIT}, no providerID, no zone, region and type labels, and no address but its host name"
    ))
}

/// Its addresses are exactly these, in this order. IPs are compared by value, so their spelling is up to the provider.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let (kind, value) = ("InternalIP", cx.own_address("192.0.2.10"));
/// let machine = cx.machine(machine("a").addresses(vec![address(kind, &value)])).await?;
/// let node = cx.node(machine.node()).await?;
/// node.becomes(has_addresses(vec![(kind.to_owned(), value)])).await
/// # }
/// ```
pub fn has_addresses(wanted: Vec<(String, String)>) -> Matcher<MaybeNode> {
    let claim = format!("has the addresses {}", show_addresses(&wanted));
    let wanted = by_value(wanted);
    holds(claim, move |node: &MaybeNode| node.as_ref().is_some_and(|n| by_value(addresses(n)) == wanted))
}

/// With every IP in its canonical spelling.
fn by_value(mut addresses: Vec<(String, String)>) -> Vec<(String, String)> {
    for (_, address) in &mut addresses {
        if let Ok(ip) = address.parse::<IpAddr>() {
            *address = ip.to_string();
        }
    }
    addresses
}

/// Zone, region and type labels of both generations, from the machine's properties; none for properties that are empty.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
/// let labels = expected_labels(&machine.as_reported());
/// node.becomes(has_labels(labels)).await
/// # }
/// ```
pub fn expected_labels(instance: &Instance) -> Vec<(&'static str, String)> {
    [
        (L_ZONE, &instance.zone),
        (B_ZONE, &instance.zone),
        (L_REGION, &instance.region),
        (B_REGION, &instance.region),
        (L_TYPE, &instance.instance_type),
        (B_TYPE, &instance.instance_type),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key, value.clone()))
    .collect()
}

/// What an initialised Node lacks, as text; empty if it lacks nothing.
pub fn missing_metadata(node: &Node, instance: &Instance) -> Vec<String> {
    let mut missing: Vec<String> = expected_labels(instance)
        .into_iter()
        .filter(|(key, value)| label(node, key).as_deref() != Some(value))
        .map(|(key, value)| format!("label {key}={value}"))
        .collect();
    if instance.provider_id.is_some() && provider_id(node).is_none() {
        missing.push("spec.providerID".to_owned());
    }
    missing
}

/// It has everything that the cloud supplies for that machine.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
/// let seen = node.becomes(initialised()).await?;
/// let whole = initialised_as("has everything that the cloud supplies", &machine.as_reported());
/// node.has_shown(&Some(seen), whole)
/// # }
/// ```
pub fn initialised_as(claim: &str, instance: &Instance) -> Matcher<MaybeNode> {
    let instance = instance.clone();
    let labels: Vec<String> = expected_labels(&instance).iter().map(|(k, v)| format!("{k}={v}")).collect();
    let expected = format!("a Node with a providerID and the labels {}", labels.join(", "));
    matcher(claim, move |node: &MaybeNode| match node {
        None => Observation::Pending("no such Node".to_owned()),
        Some(node) => match missing_metadata(node, &instance) {
            missing if missing.is_empty() => Observation::Matched(()),
            missing => Observation::Pending(format!("missing: {}", missing.join(", "))),
        },
    })
    .expecting(expected)
}

/// It carries these labels with these values.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(machine: &Machine<'_>, node: &Node<'_>) -> Verdict {
/// let zone = machine.as_reported().zone;
/// node.becomes(has_labels(vec![(L_ZONE, zone)])).await
/// # }
/// ```
pub fn has_labels(wanted: Vec<(&'static str, String)>) -> Matcher<MaybeNode> {
    let words: Vec<String> = wanted.iter().map(|(key, value)| format!("{key}={value}")).collect();
    holds(format!("has the labels {}", words.join(", ")), move |node: &MaybeNode| {
        node.as_ref()
            .is_some_and(|n| wanted.iter().all(|(key, value)| label(n, key).as_deref() == Some(value)))
    })
}
