//! Address and label population: what the cloud knows of a machine appears on its Node (contract NODE-ADDR, NODE-LBL).

use crate::addresses;
use crate::judges::{MaybeNode, expected_labels, has_labels};
use crate::nodes::{becomes_initialised, joins};
use harness::check::{Capability, Stop, Verdict};
use harness::cx::{Check, CheckCx, NodePlan, Suite};
use harness::k8s::{B_REGION, B_TYPE, B_ZONE, L_REGION, L_TYPE, L_ZONE, label};
use harness::probe::{Observed, holds};
use serde_json::{Value, json};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "address-and-label-population",
    proves: "addresses, zone, region and instance type of the cloud appear on the Node, and stay right",
    tables: &[&addresses::CHECKS, &CHECKS],
};

const INSTANCES: &[Capability] = &[Capability::Instances];
const ZONES: &[Capability] = &[Capability::Instances, Capability::Zones];
const MODIFIERS: &str = "k8s.io/cloud-provider node_controller.go getNodeModifiersFromCloudProvider";
const RECONCILE: &str = "k8s.io/cloud-provider node_controller.go reconcileNodeLabels";

const CHECKS: [Check; 6] = [
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
    .needs(ZONES),
    Check::must(
        "NODE-LBL-08",
        "a GA label that differs from its beta twin is reset to it",
        RECONCILE,
        |cx| Box::pin(repairs_drift(cx)),
    )
    .needs(ZONES),
];

async fn writes_labels(cx: &CheckCx, keys: &'static [&'static str]) -> Verdict {
    let mut instance = cx.instance("a");
    // Values of this check alone, all different: a swap cannot pass.
    instance.zone = cx.name("zone");
    instance.region = cx.name("region");
    instance.instance_type = cx.name("type");
    let node = joins(cx, &instance, NodePlan::new(&instance.name)).await?;
    let wanted = expected_labels(&instance).into_iter().filter(|(key, _)| keys.contains(key));
    for (key, value) in wanted {
        if label(&node, key).as_deref() != Some(&value) {
            return Err(Stop::unmet(
                "the cloud's value is on the label",
                format!("{key}={value}"),
                node.observed(),
            ));
        }
    }
    Ok(())
}

async fn omits_empty_values(cx: &CheckCx) -> Verdict {
    let mut instance = cx.instance("a");
    instance.zone.clear();
    instance.region.clear();
    let node = joins(cx, &instance, NodePlan::new(&instance.name)).await?;
    let written: Vec<String> = [L_ZONE, B_ZONE, L_REGION, B_REGION]
        .iter()
        .filter_map(|key| label(&node, key).map(|value| format!("{key}={value:?}")))
        .collect();
    if written.is_empty() {
        return Ok(());
    }
    Err(Stop::unmet(
        "no label for what the cloud leaves empty",
        "no zone and region labels",
        written.join(", "),
    ))
}

async fn overwrites_at_initialisation(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    let mut plan = NodePlan::new(&instance.name);
    for key in [L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE] {
        plan = plan.label(key, "wrong");
    }
    cx.create_node(plan).await?;
    let node = becomes_initialised(cx, "the taint goes", &instance.name).await?;
    let missing = crate::judges::missing_metadata(&node, &instance);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Stop::unmet("all six labels are the cloud's", missing.join(", "), node.observed()))
}

async fn repairs_drift(cx: &CheckCx) -> Verdict {
    let instance = cx.instance("a");
    cx.put_instance(&instance).await?;
    cx.create_node(NodePlan::new(&instance.name)).await?;
    let wanted = expected_labels(&instance);
    let read = async || Ok(cx.find_node(&instance.name));
    let limit = cx.limits().watch();
    cx.eventually("the Node is initialised with its labels", limit, read, has_labels(wanted.clone())).await?;
    for (key, beta) in [(L_ZONE, B_ZONE), (L_REGION, B_REGION), (L_TYPE, B_TYPE)] {
        for edit in [json!("edited"), Value::Null] {
            let read = async || Ok(cx.find_node(&instance.name));
            cx.patch_node(&instance.name, &json!({"metadata": {"labels": {key: edit}}})).await?;
            let value = wanted.iter().find(|(k, _)| *k == beta).map(|(_, v)| v.clone()).unwrap_or_default();
            let expected = format!("{key}={value}, the value of {beta}");
            let reset = holds(expected, move |node: &MaybeNode| {
                node.as_ref().is_some_and(|n| label(n, key).as_deref() == Some(&value))
            });
            let promise = format!("{key} is put right after it became {edit}");
            cx.eventually(&promise, limit, read, reset).await?;
        }
    }
    Ok(())
}
