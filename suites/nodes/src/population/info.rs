//! Optional behaviour with addresses and labels after the initialisation: recorded, never failed (contract
//! NODE-ADDR-13, NODE-LBL-09, -12).

use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::joining::{joined, node_with};
use suites_common::observing::whether;

const INSTANCES: &[Capability] = &[Capability::Instances];

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-ADDR-13", |cx| Box::pin(notes_whether_order_is_followed(cx))).needs(INSTANCES).takes(25),
    Check::of("NODE-LBL-09", |cx| Box::pin(notes_which_label_counts(cx))).needs(INSTANCES).takes(20),
    Check::of("NODE-LBL-12", |cx| Box::pin(notes_whether_types_are_followed(cx))).needs(INSTANCES).takes(25),
];

async fn notes_whether_order_is_followed(cx: &CheckCx) -> Verdict {
    cx.addresses_are_refreshed_often()?;
    let (machine, node) = joined(cx, machine("a")).await?;
    let instance = machine.instance();
    let mut whole = node_with(&instance.addresses, &instance.name);
    cx.in_reported_order(&mut whole, &[]);
    node.becomes(has_addresses(whole)).within(cx.limits().addresses_after_taint()).await?;
    machine.change(|instance| instance.addresses.reverse()).await?;
    let reversed = node_with(&machine.instance().addresses, &instance.name);
    let follows = node.becomes(has_addresses(reversed)).within(cx.limits().addresses_refreshed());
    cx.record("order_followed", whether(follows.when("in their new order").await)?);
    Ok(())
}

/// How long the check waits to see that an edited label is not repaired.
const LEFT: Duration = Duration::from_secs(20);

async fn notes_which_label_counts(cx: &CheckCx) -> Verdict {
    let (_, node) = joined(cx, machine("a")).await?;
    let limit = if cx.framework_has(30) { cx.limits().watch() } else { cx.limits().refresh() };
    let ga = |value: &str| has_labels(vec![(L_TYPE, value.to_owned())]);
    node.label(B_TYPE, Some("edited")).await?;
    let follows = node.becomes(ga("edited")).within(limit).when(format!("as {B_TYPE} says"));
    cx.record("ga_follows_beta", whether(follows.await)?);
    node.label(B_TYPE, None).await?;
    node.label(L_TYPE, Some("alone")).await?;
    let left = node.keeps(ga("alone")).within(LEFT).when(format!("without {B_TYPE}"));
    cx.record("ga_without_beta_left_alone", whether(left.await)?);
    Ok(())
}

async fn notes_whether_types_are_followed(cx: &CheckCx) -> Verdict {
    cx.types_differ()?;
    cx.addresses_are_refreshed_often()?;
    let (machine, node) = joined(cx, machine("a")).await?;
    let resized = cx.name("resized");
    let kind = resized.clone();
    machine.change(move |instance| instance.instance_type = kind).await?;
    let follows = node.becomes(has_labels(vec![(L_TYPE, resized)]));
    let limit = 2 * Limits::STATUS_PERIOD + cx.limits().instance_cache();
    let follows = follows.within(limit).when("after its machine was resized");
    cx.record("type_followed", whether(follows.await)?);
    Ok(())
}
