//! Label population (contract NODE-LBL).

use crate::joining::registered;
use harness::check::{Before, Capability, Stop, Verdict};
use harness::cx::matchers::{expected_labels, has_labels, initialised, initialised_as};
use harness::cx::{Check, CheckCx, Subject, machine};
use harness::k8s::{B_REGION, B_TYPE, B_ZONE, L_REGION, L_TYPE, L_ZONE, label};
use harness::probe::{Matcher, Seen, matcher};
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

const INSTANCES: &[Capability] = &[Capability::Instances];
const ZONES: &[Capability] = &[Capability::Instances, Capability::Zones];
const MODIFIERS: &str = "k8s.io/cloud-provider node_controller.go getNodeModifiersFromCloudProvider";
const RECONCILE: &str = "k8s.io/cloud-provider node_controller.go reconcileNodeLabels";

pub(super) const CHECKS: &[Check] = &[
    Check::must("NODE-LBL-01", "a zone appears under both zone labels", MODIFIERS, |cx| {
        Box::pin(writes_labels(cx, &[L_ZONE, B_ZONE]))
    })
    .needs(ZONES),
    Check::must("NODE-LBL-02", "a region appears under both region labels", MODIFIERS, |cx| {
        Box::pin(writes_labels(cx, &[L_REGION, B_REGION]))
    })
    .needs(ZONES),
    Check::must("NODE-LBL-03", "an instance type appears under both type labels", MODIFIERS, |cx| {
        Box::pin(writes_labels(cx, &[L_TYPE, B_TYPE]))
    })
    .needs(INSTANCES),
    Check::must("NODE-LBL-04", "what the cloud leaves empty produces no label", MODIFIERS, |cx| {
        Box::pin(omits_empty_values(cx))
    })
    .needs(ZONES),
    Check::must("NODE-LBL-05", "initialisation overwrites labels the kubelet had set", MODIFIERS, |cx| {
        Box::pin(overwrites_at_initialisation(cx))
    })
    .needs(INSTANCES),
    Check::must(
        "NODE-LBL-08",
        "a GA label that differs from its beta twin is reset to it",
        RECONCILE,
        |cx| Box::pin(repairs_drift(cx)),
    )
    .needs(INSTANCES)
    .since(
        30,
        "label repair on every event",
        Before::Otherwise("it is reset by the next periodic refresh"),
    ),
];

async fn writes_labels(cx: &CheckCx, keys: &'static [&'static str]) -> Verdict {
    // Values of this check alone, all different: a swap cannot pass.
    let [zone, region, kind] = ["zone", "region", "type"].map(|what| cx.name(what));
    let elsewhere = cx.reports_the_machines_location();
    let machine = cx.machine(machine("a").with(move |instance| {
        instance.instance_type = kind;
        if elsewhere {
            (instance.zone, instance.region) = (zone, region);
        }
    }));
    let machine = machine.await?;
    let node = cx.node(machine.node()).await?;
    let seen = node.becomes(initialised()).await?;
    let mut wanted = expected_labels(&machine.as_reported());
    wanted.retain(|(key, _)| keys.contains(key));
    node.has_shown(&Some(seen), has_labels(wanted))
}

/// It carries none of these labels.
fn lacks_labels(keys: &'static [&'static str]) -> Matcher<Option<Arc<Node>>> {
    matcher("has no label for what the cloud leaves empty", |node: &Option<Arc<Node>>| {
        let Some(node) = node else { return Seen::NotYet("no such Node".to_owned()) };
        let written = keys.iter().filter_map(|key| label(node, key).map(|value| format!("{key}={value:?}")));
        match written.collect::<Vec<String>>() {
            none if none.is_empty() => Seen::Yes(()),
            written => Seen::NotYet(written.join(", ")),
        }
    })
    .expecting("no zone and region labels")
}

async fn omits_empty_values(cx: &CheckCx) -> Verdict {
    if !cx.reports_the_machines_location() {
        let why = "its zone and region are the same for every machine, so there is none without";
        return Err(Stop::NotObservable(why.to_owned()));
    }
    let nowhere = machine("a").with(|instance| {
        instance.zone.clear();
        instance.region.clear();
    });
    let (_, node) = registered(cx, nowhere).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(&Some(seen), lacks_labels(&[L_ZONE, B_ZONE, L_REGION, B_REGION]))
}

async fn overwrites_at_initialisation(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let labels = expected_labels(&machine.as_reported());
    let plan = labels.iter().fold(machine.node(), |plan, (key, _)| plan.label(key, "wrong"));
    let node = cx.node(plan).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(
        &Some(seen),
        initialised_as("has the cloud's value on all of these labels", &machine.as_reported()),
    )
}

async fn repairs_drift(cx: &CheckCx) -> Verdict {
    let (machine, node) = registered(cx, machine("a")).await?;
    let wanted = expected_labels(&machine.as_reported());
    node.becomes(has_labels(wanted.clone())).when("once it is initialised").await?;
    let limit = if cx.framework_has(30) { cx.limits().watch() } else { cx.limits().refresh() };
    for (key, beta) in [(L_ZONE, B_ZONE), (L_REGION, B_REGION), (L_TYPE, B_TYPE)] {
        // What the CCM does not report it has not labelled.
        let Some((_, value)) = wanted.iter().find(|(k, _)| *k == beta) else { continue };
        for edit in [Some("edited"), None] {
            node.label(key, edit).await?;
            let reset = has_labels(vec![(key, value.clone())]);
            let edited = edit.map_or("was removed".to_owned(), |to| format!("became {to}"));
            node.becomes(reset).within(limit).when(format!("after it {edited}, as {beta} says")).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_label_is_no_label() {
        let of = |labels: serde_json::Value| {
            serde_json::from_value(json!({"metadata": {"labels": labels}})).ok().map(Arc::new)
        };
        let none = || lacks_labels(&[L_ZONE, B_ZONE]);
        assert_eq!(none().matches(&of(json!({"other": "x"}))), Seen::Yes(()));
        assert_eq!(none().matches(&of(json!({L_ZONE: ""}))), Seen::NotYet(format!("{L_ZONE}=\"\"")));
        assert!(matches!(none().matches(&None), Seen::NotYet(_)));
    }
}
