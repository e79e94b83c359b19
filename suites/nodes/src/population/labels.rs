//! Label population (contract NODE-LBL).

use harness_testkit::prelude::Node as NodeOf;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;
use suites_common::joining::registered;

const INSTANCES: &[Capability] = &[Capability::Instances];
const ZONES: &[Capability] = &[Capability::Instances, Capability::Zones];
const REGIONS: &[Capability] = &[Capability::Instances, Capability::Regions];
const ADDITIONAL: &[Capability] = &[Capability::Instances, Capability::AdditionalLabels];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-LBL-01", |cx| Box::pin(writes_labels(cx, &[L_ZONE, B_ZONE]))).needs(ZONES),
    Check::of("NODE-LBL-02", |cx| Box::pin(writes_labels(cx, &[L_REGION, B_REGION]))).needs(REGIONS),
    Check::of("NODE-LBL-03", |cx| Box::pin(writes_labels(cx, &[L_TYPE, B_TYPE]))).needs(INSTANCES),
    Check::of("NODE-LBL-04", |cx| Box::pin(omits_empty_values(cx))).needs(INSTANCES),
    Check::of("NODE-LBL-05", |cx| Box::pin(overwrites_at_initialisation(cx))).needs(INSTANCES),
    Check::of("NODE-LBL-06", |cx| Box::pin(adds_the_clouds_labels(cx))).needs(ADDITIONAL),
    Check::of("NODE-LBL-07", |cx| Box::pin(discards_reserved_labels(cx))).needs(ADDITIONAL),
    Check::of("NODE-LBL-08", |cx| Box::pin(repairs_drift(cx))).needs(INSTANCES).takes(6),
];

async fn writes_labels(cx: &CheckCx, keys: &'static [&'static str]) -> Verdict {
    // The values belong to this check alone and are all different, so that swapped values cannot pass.
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

/// Matches a Node without any of these labels.
fn lacks_labels(keys: &'static [&'static str]) -> Matcher<Option<Arc<Node>>> {
    matcher(format!("has none of the labels {}", keys.join(", ")), |node: &Option<Arc<Node>>| {
        let Some(node) = node else { return Observation::Pending("no such Node".to_owned()) };
        let written = keys.iter().filter_map(|key| label(node, key).map(|value| format!("{key}='{value}'")));
        match written.collect::<Vec<String>>() {
            none if none.is_empty() => Observation::Matched(()),
            written => Observation::Pending(written.join(", ")),
        }
    })
    .expecting(format!("no label {}", keys.join(", ")))
}

/// Matches a Node on which none of the six labels is empty.
fn no_empty_label() -> Matcher<Option<Arc<Node>>> {
    matcher("has no empty label of zone, region or type", |node: &Option<Arc<Node>>| {
        let Some(node) = node else { return Observation::Pending("no such Node".to_owned()) };
        let empty: Vec<&str> =
            supplied(node).into_iter().filter(|(_, value)| value.is_empty()).map(|(key, _)| key).collect();
        match empty.is_empty() {
            true => Observation::Matched(()),
            false => Observation::Pending(format!("{} are empty", empty.join(", "))),
        }
    })
    .expecting("each of them with a value, or not there".to_owned())
}

async fn omits_empty_values(cx: &CheckCx) -> Verdict {
    let (_, node) = registered(cx, machine("usual")).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(&Some(seen), no_empty_label())?;
    // If the cloud reports a value for all its machines, none can be without it.
    if !cx.declares(Capability::Zones) {
        return Ok(());
    }
    if !cx.reports_the_machines_location() {
        let why = "its zone and region are the same for every machine, so there is none without";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    let nowhere = machine("a").with(|instance| {
        instance.zone.clear();
        instance.region.clear();
    });
    let (_, node) = registered(cx, nowhere).await?;
    let seen = node.becomes(initialised()).await?;
    node.has_shown(&Some(seen), lacks_labels(&[L_ZONE, B_ZONE, L_REGION, B_REGION]))
}

/// The ones of the six labels that the Node has.
fn supplied(node: &Node) -> Vec<(&'static str, String)> {
    let keys = [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE];
    keys.into_iter().filter_map(|key| label(node, key).map(|value| (key, value))).collect()
}

async fn overwrites_at_initialisation(cx: &CheckCx) -> Verdict {
    // Not every cloud has zones. A Node that had wrong labels has to get the same ones as a Node that had none.
    let (_, bare) = registered(cx, machine("bare")).await?;
    let bare = bare.becomes(initialised()).await?;
    let machine = cx.machine(machine("a")).await?;
    let labels = expected_labels(&machine.as_reported());
    let plan = labels.iter().fold(machine.node(), |plan, (key, _)| plan.label(key, "wrong"));
    let node = cx.node(plan).await?;
    let seen = node.becomes(initialised()).await?;
    let kind = machine.as_reported().instance_type;
    node.has_shown(&Some(seen.clone()), has_labels(vec![(L_TYPE, kind.clone()), (B_TYPE, kind)]))?;
    node.has_shown(&Some(seen), has_labels(supplied(&bare)))
}

async fn repairs_drift(cx: &CheckCx) -> Verdict {
    let (machine, node) = registered(cx, machine("a")).await?;
    let limit = if cx.framework_has(30) { cx.limits().watch() } else { cx.limits().refresh() };
    let seen = node.becomes(initialised()).await?;
    let kind = machine.as_reported().instance_type;
    node.has_shown(&Some(seen.clone()), has_labels(vec![(B_TYPE, kind)]))?;
    let wanted = supplied(&seen);
    for (key, beta) in [(L_ZONE, B_ZONE), (L_REGION, B_REGION), (L_TYPE, B_TYPE)] {
        let value = match wanted.iter().find(|(known, _)| *known == beta) {
            Some((_, value)) => value.clone(),
            // In a cloud without zones, a zone label can only have been set by hand.
            None if cx.framework_has(30) => {
                let by_hand = cx.name("by-hand");
                node.label(beta, Some(&by_hand)).await?;
                let made = has_labels(vec![(key, by_hand.clone())]);
                node.becomes(made).within(limit).when(format!("once {beta} was put there")).await?;
                by_hand
            }
            None => continue,
        };
        for edit in [Some("edited"), None] {
            node.label(key, edit).await?;
            let reset = has_labels(vec![(key, value.clone())]);
            let edited = edit.map_or("was removed".to_owned(), |to| format!("became {to}"));
            node.becomes(reset).within(limit).when(format!("after it {edited}, as {beta} says")).await?;
        }
    }
    Ok(())
}

/// Labels of namespaces that are reserved for Kubernetes.
const RESERVED: [&str; 4] = ["kubernetes.io/w", "foo.kubernetes.io/x", "k8s.io/y", "foo.k8s.io/v"];

/// Checks that the CCM adds the labels of the cloud, except the one that the Node already has and keeps.
async fn adds_the_clouds_labels(cx: &CheckCx) -> Verdict {
    let (_, seen, node) = offered(cx).await?;
    let wanted = vec![("example.com/own", "mine".to_owned()), ("example.com/new", "cloud".to_owned())];
    node.has_shown(&Some(seen), has_labels(wanted))
}

async fn discards_reserved_labels(cx: &CheckCx) -> Verdict {
    let (_, seen, node) = offered(cx).await?;
    let fine = has_labels(vec![("mykubernetes.io/z", "cloud".to_owned())]);
    node.has_shown(&Some(seen.clone()), fine)?;
    node.has_shown(&Some(seen), lacks_labels(&RESERVED))
}

/// Creates a Node with a label of its own, initialised from a machine for which the cloud offers labels.
async fn offered(cx: &CheckCx) -> Result<(Machine<'_>, Arc<Node>, NodeOf<'_>), CheckError> {
    let keys = ["example.com/own", "example.com/new", "mykubernetes.io/z"].into_iter().chain(RESERVED);
    let labelled = machine("a").with(move |instance| {
        instance.labels.extend(keys.map(|key| (key.to_owned(), "cloud".to_owned())));
    });
    let machine = cx.machine(labelled).await?;
    let node = cx.node(machine.node().label("example.com/own", "mine")).await?;
    let seen = node.becomes(initialised()).await?;
    Ok((machine, seen, node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_label_is_not_set() {
        let of = |labels: serde_json::Value| {
            serde_json::from_value(json!({"metadata": {"labels": labels}})).ok().map(Arc::new)
        };
        let none = || lacks_labels(&[L_ZONE, B_ZONE]);
        assert_eq!(none().matches(&of(json!({"other": "x"}))), Observation::Matched(()));
        assert_eq!(none().matches(&of(json!({L_ZONE: ""}))), Observation::Pending(format!("{L_ZONE}=''")));
        assert!(matches!(none().matches(&None), Observation::Pending(_)));
    }
}
