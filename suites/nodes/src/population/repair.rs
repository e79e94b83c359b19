//! The repair of labels: what it may change, what it costs, and what it leaves to the initialisation
//! (contract NODE-LBL-10, -11).

use crate::taint_removal::{looked_at, no_controller_looked};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeMap;
use suites_common::joining::ccm_initialises_others;
use tokio::time::Instant;

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-LBL-10", |cx| Box::pin(repairs_nothing_else(cx))).by_calls().needs(INSTANCES).takes(13),
    Check::of("NODE-LBL-11", |cx| Box::pin(repairs_no_tainted_node(cx))).needs(INSTANCES).takes(11),
];

/// The key of a label and an annotation that another client has set.
const OWN: &str = "example.com/own";
/// How many times a label is edited: more often than the periodic refresh comes in that time.
const EDITS: usize = 12;

/// Everything on the Node that a repair must not change.
fn others(node: &Node) -> (BTreeMap<String, String>, Option<String>) {
    let mut labels = node.labels().clone();
    labels.retain(|key, _| ![L_ZONE, B_ZONE, L_REGION, B_REGION, L_TYPE, B_TYPE].contains(&key.as_str()));
    (labels, node.annotations().get(OWN).cloned())
}

async fn repairs_nothing_else(cx: &CheckCx) -> Verdict {
    if !cx.framework_has(30) {
        let why = "labels are repaired when addresses are refreshed, which asks the cloud";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    let machine = cx.machine(machine("a")).await?;
    let node = cx.node(machine.node().label(OWN, "kept").annotation(OWN, "kept")).await?;
    // A client that removes a taint writes the whole list, so the uninitialized taint, and with it work, may
    // be back for a moment.
    node.becomes(looked_at()).await.map_err(no_controller_looked)?;
    node.becomes(initialised()).await?;
    // A refresh of addresses may cost as many calls as the initialisation did.
    let each = node.calls().list().await?.len().max(1);
    // A new Node makes work for other controllers, too: the one of routes looks its machine up.
    let settled = node.keeps(present()).within(Limits::STATUS_PERIOD);
    settled.when("until what a new Node brings about is over").await?;
    let seen = node.becomes(initialised()).await?;
    let before = others(&seen);
    let kind = label(&seen, B_TYPE).unwrap_or_default();
    let (mark, began) = (cx.cloud().mark_now().await?, Instant::now());
    for round in 1..=EDITS {
        node.label(L_TYPE, Some(&format!("edited-{round}"))).await?;
        let repaired = has_labels(vec![(L_TYPE, kind.clone())]);
        node.becomes(repaired).when(format!("after it was edited, as {B_TYPE} says")).await?;
    }
    let refreshes = 1 + began.elapsed().as_secs() / Limits::STATUS_PERIOD.as_secs();
    let allowed = each * usize::try_from(refreshes).unwrap_or(usize::MAX);
    let calls = node.calls().since(mark).list().await?.len();
    if calls > allowed {
        let expected = format!("at most {allowed} calls, for refreshes of its addresses");
        let seen = format!("{calls} calls in {EDITS} repairs");
        return Err(node.breaks("the repair of its labels asks the cloud nothing", &expected, &seen));
    }
    let after = node.becomes(initialised()).await?;
    if others(&after) == before {
        return Ok(());
    }
    let promise = "the repair of its labels changes no other, and no annotation";
    Err(node.breaks(promise, &json!(before).to_string(), &json!(others(&after)).to_string()))
}

async fn repairs_no_tainted_node(cx: &CheckCx) -> Verdict {
    let [reported, provided] = ["192.0.2.10", "192.0.2.99"].map(|ip| cx.own_address(ip));
    let machine = cx.machine(machine("held").addresses(vec![address("InternalIP", &reported)])).await?;
    let plan = machine.node().annotation(A_NODEIP, &provided).label(B_TYPE, "beta").label(L_TYPE, "beta");
    let node = cx.node(plan).await?;
    ccm_initialises_others(cx).await?;
    node.label(L_TYPE, Some("edited")).await?;
    let edited = has_labels(vec![(L_TYPE, "edited".to_owned()), (B_TYPE, "beta".to_owned())]);
    node.keeps(edited).within(cx.limits().watch()).when("while it cannot be initialised").await
}
