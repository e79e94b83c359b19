//! Nodes that have to stay tainted for a while, because the cloud fails or does not know the Node's address.

use super::versions::has_had_everything;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use suites_common::failures::{
    FAILURES, PATIENCE, every_other_fails, for_each_failure, holding_up_a_loop, no_answer, unless_it_lists,
};
use suites_common::joining::{ccm_initialises_others, joined, node_with, recovers};
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-13", |cx| Box::pin(insists_on_the_provided_ip(cx)))
        .needs(&[Capability::Instances])
        .takes(31),
    Check::of("NODE-INIT-12", |cx| Box::pin(waits_for_its_machine(cx)))
        .needs(&[Capability::Instances])
        .takes(31),
    Check::of("NODE-INIT-09", |cx| Box::pin(waits_for_a_provider_id(cx)))
        .needs(&[Capability::Instances])
        .takes(35),
    Check::of("NODE-INIT-14", |cx| Box::pin(insists_on_a_readable_ip(cx)))
        .needs(&[Capability::Instances])
        .takes(31),
    Check::of("NODE-INIT-25", |cx| Box::pin(refreshes_no_tainted_node(cx)))
        .needs(&[Capability::Instances])
        .takes(25),
    Check::of("NODE-INIT-24", |cx| Box::pin(continues_despite_the_unknown(cx)))
        .needs(&[Capability::Instances])
        .takes(25),
    Check::of("NODE-INIT-10.client-timeout", |cx| Box::pin(waits_out_silence(cx)))
        .needs(&[Capability::Instances])
        .with(&[Facility::Faults])
        .hanging()
        // A reconciliation of routes waits for this look-up.
        .holds_up_a_loop()
        .takes(40),
    Check::of("NODE-INIT-10.half", |cx| Box::pin(waits_for_the_other_half(cx)))
        .needs(&[Capability::Instances])
        .with(&[Facility::Faults])
        .holds_up_a_loop()
        .takes(12),
    Check::of("NODE-INIT-10.list", |cx| Box::pin(waits_out_failed_lists(cx)))
        .by_calls()
        .needs(&[Capability::Instances])
        .with(&[Facility::Faults])
        .alone(),
];

// A reconciliation of routes waits for the look-up of each machine, including the client's retries.
pub(super) const FAILED_LOOKUPS: [Check; FAILURES.len()] =
    holding_up_a_loop(for_each_failure("NODE-INIT-10", 35, |cx, failure| {
        Box::pin(waits_out_a_cloud_error(cx, failure))
    }));

async fn waits_out_a_cloud_error(cx: &CheckCx, failure: usize) -> Verdict {
    let failure = &FAILURES[failure];
    let machine = cx.machine(machine("a")).await?;
    let began = Instant::now();
    // A look-up may use the name or the id. A list is not about one object, so the fault does not concern it.
    let fault = machine.cloud().meets(failure.name, failure.effects).to(&[Op::InstanceGet]).await?;
    let node = cx.node(machine.node()).await?;
    fault.hits(1).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let outage = cx.limits().quiet_nodes();
    node.keeps(untouched()).within(outage).when("while its machine cannot be looked up").await?;
    fault.clear().await?;
    recovers(cx, &machine, &node, began.elapsed()).await
}

async fn waits_out_silence(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let fault =
        machine.cloud().meets("look-ups without an answer", &no_answer()).to(&[Op::InstanceGet]).await?;
    let node = cx.node(machine.node()).await?;
    fault.hits(1).await.map_err(|stop| unless_it_lists(cx, stop))?;
    node.keeps(untouched()).within(PATIENCE).when("while no look-up of its machine is answered").await?;
    fault.clear().await?;
    // The current look-up may wait as long again.
    recovers(cx, &machine, &node, 2 * PATIENCE).await
}

/// For how long every other look-up fails. A Node is tried about ten times in it.
const HALF: Duration = Duration::from_secs(5);

/// A CCM that needs one call has the whole answer at once. A CCM that needs more gets one answer and then an
/// error, and must not continue with only the first.
async fn waits_for_the_other_half(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let began = Instant::now();
    let fault = machine
        .cloud()
        .meets("every other look-up fails", &every_other_fails(503))
        .to(&[Op::InstanceGet])
        .await?;
    let node = cx.node(machine.node()).await?;
    fault.hits(1).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let kept = node.keeps(untouched_or_whole(cx, &machine)).within(HALF);
    kept.when("while every other look-up of its machine fails").await?;
    fault.clear().await?;
    recovers(cx, &machine, &node, began.elapsed()).await?;
    // A label that was set after the taint was removed came too late, whichever controller set it.
    has_had_everything(&machine, &node)
}

/// Matches a Node that is either unchanged, or has everything that the cloud supplies. A whole Node may still have the taint:
/// some CCMs remove it with a later call, and another client can write an earlier list of taints again (Kubernetes 1.20 does).
fn untouched_or_whole(cx: &CheckCx, machine: &Machine<'_>) -> Matcher<Option<Arc<core::Node>>> {
    let (untouched, whole) = (untouched(), initialised_as("is whole", &machine.as_reported()));
    let mut addresses = node_with(&machine.instance().addresses, &machine.name());
    cx.in_reported_order(&mut addresses, &[]);
    let addressed = has_addresses(addresses);
    let expected = format!("{}; or {}", untouched.expected(), whole.expected());
    matcher("is not touched, or has everything the cloud supplies", move |node| {
        let (unchanged, is_whole) = (untouched.matches(node), whole.matches(node));
        match (&unchanged, initialised().matches(node), addressed.matches(node)) {
            (Observation::Pending(_), Observation::Matched(_), _) => is_whole,
            (Observation::Pending(_), _, Observation::Matched(_)) if is_whole == Observation::Matched(()) => {
                is_whole
            }
            _ => unchanged,
        }
    })
    .expecting(expected)
}

/// The counterpart of [`waits_out_a_cloud_error`] for a CCM that lists machines. A CCM that uses no lists
/// keeps initialising Nodes, as failing lists do not concern it. The same is true of one that lists machines
/// for another purpose, or that uses another way where a list fails.
async fn waits_out_failed_lists(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let refusal = |status| Effect::Status { status, retry_after_s: None };
    let late = Effect::Status { status: 429, retry_after_s: Some(1) };
    let failures = [refusal(403), Effect::Refuse, Effect::Malformed, late, refusal(503)];
    let fault = cx.cloud().anything().meets("lists that fail", &failures).to(&[Op::InstanceList]);
    let fault = fault.await?;
    let node = cx.node(machine.node()).await?;
    let lists = cx.cloud().calls().of(&[Op::InstanceList]);
    let seen = (&node, &lists);
    let way = seen.becomes(matcher("shows how it is looked up", |seen: &(Option<_>, Vec<_>)| {
        match (initialised().matches(&seen.0), seen.1.is_empty()) {
            (_, false) => Observation::Matched(true),
            (Observation::Matched(_), true) => Observation::Matched(false),
            (Observation::Pending(why) | Observation::Impossible(why), true) => Observation::Pending(why),
        }
    }));
    let listed = way.when("while lists of machines fail").await?;
    cx.record("lists", listed);
    if !listed {
        return Ok(());
    }
    let outage = cx.limits().quiet_nodes();
    let kept = node.keeps(untouched_or_whole(cx, &machine)).within(outage);
    kept.when("while machines cannot be listed").await?;
    fault.clear().await?;
    recovers(cx, &machine, &node, outage).await
}

/// Edits a Node again and again, so that a CCM that waits with a back-off looks at it again. Ends only when
/// an edit fails.
async fn touches(node: &Node<'_>) -> CheckError {
    let mut round = 0;
    loop {
        round += 1;
        let edit = json!({"metadata": {"annotations": {"example.com/touched": round.to_string()}}});
        if let Err(stop) = node.patch(&edit).await {
            return stop;
        }
        pause(TOUCH_EVERY).await;
    }
}

/// How often a Node is edited that the CCM has to look at again. A CCM may cache answers of the cloud for ten
/// seconds, so the first look may use old data.
const TOUCH_EVERY: Duration = Duration::from_secs(3);

async fn waits_for_its_machine(cx: &CheckCx) -> Verdict {
    let machine = cx.absent_machine(machine("unknown"));
    let node = cx.node(machine.node()).await?;
    ccm_initialises_others(cx).await?;
    let quiet = node.keeps(untouched()).within(cx.limits().quiet_nodes());
    quiet.when("while the cloud does not know its machine").await?;
    machine.appears().await?;
    let seen = tokio::select! {
        stop = touches(&node) => return Err(stop),
        seen = async { node.becomes(initialised()).within(2 * cx.limits().watch()).when("once its machine is there").await } => seen?,
    };
    let claim = "has everything the cloud supplies once its machine is there";
    node.has_shown(&Some(seen), initialised_as(claim, &machine.as_reported()))
}

async fn insists_on_the_provided_ip(cx: &CheckCx) -> Verdict {
    let [reported, provided] = ["192.0.2.10", "192.0.2.99"].map(|ip| cx.own_address(ip));
    let machine = cx.machine(machine("held").addresses(vec![address("InternalIP", &reported)])).await?;
    let held = cx.node(machine.node().annotation(A_NODEIP, &provided)).await?;
    ccm_initialises_others(cx).await?;
    let quiet = held.keeps(untouched()).within(cx.limits().quiet_nodes());
    quiet.when("while the cloud does not report its provided IP").await?;
    machine.change(|instance| instance.addresses = vec![address("InternalIP", &provided)]).await?;
    let changed = Instant::now();
    // An edit skips the back-off (contract NODE-INIT-13). At the first edit, the CCM may still use old data
    // about the machine.
    for touch in 1.. {
        held.patch(&json!({"metadata": {"annotations": {"example.com/touched": touch.to_string()}}})).await?;
        let fresh = changed.elapsed() >= cx.limits().instance_cache();
        match held.becomes(initialised()).when("once the cloud reports the IP").await {
            Err(CheckError::Violation(_)) if !fresh => {}
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}

/// Matches a Node that is still uninitialised, whatever else has changed.
fn stays_tainted() -> Matcher<Option<Arc<core::Node>>> {
    holds("stays tainted", |node: &Option<Arc<core::Node>>| {
        node.as_ref().is_some_and(|node| has_taint(node, T_UNINIT))
    })
    .expecting(format!("a Node with the taint {T_UNINIT}"))
}

/// Creates a machine for which the cloud reports no providerID. Returns the machine and the id that it will get.
async fn nameless(cx: &CheckCx) -> Result<(Machine<'_>, String), CheckError> {
    let machine = cx.absent_machine(machine("nameless"));
    let id = machine.provider_id();
    machine.change(|instance| instance.provider_id = None).await?;
    Ok((machine, id))
}

async fn waits_for_a_provider_id(cx: &CheckCx) -> Verdict {
    let (machine, id) = nameless(cx).await?;
    let node = cx.node(machine.node()).await?;
    ccm_initialises_others(cx).await?;
    let outage = cx.limits().quiet_nodes();
    let kept = node.keeps(stays_tainted()).within(outage).when("while its machine has no providerID").await;
    if kept.is_err() && cx.may_do_without_provider_ids() {
        let why = "interface v1 may say that it knows no ids, and then none is waited for";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    kept?;
    machine.change(|instance| instance.provider_id = Some(id)).await?;
    // The Node is not changed by anyone: the CCM retries by itself.
    recovers(cx, &machine, &node, outage + cx.limits().instance_cache()).await
}

async fn insists_on_a_readable_ip(cx: &CheckCx) -> Verdict {
    let mut held = Vec::new();
    for (suffix, unreadable) in [("word", "not-an-ip"), ("empty", "")] {
        let machine = cx.machine(machine(suffix)).await?;
        let node = cx.node(machine.node().annotation(A_NODEIP, unreadable)).await?;
        held.push((machine, node));
    }
    ccm_initialises_others(cx).await?;
    let [(first, one), (second, other)] = &held[..] else { unreachable!("two were made") };
    let nodes = (one, other);
    let quiet = nodes.keeps(both(untouched(), untouched())).within(cx.limits().quiet_nodes());
    quiet.when("while its provided IP is none").await?;
    for (machine, node) in [(first, one), (second, other)] {
        let instance = machine.instance();
        let ip = instance.addresses.first().map(|a| a.address.clone()).unwrap_or_default();
        node.patch(&json!({"metadata": {"annotations": {A_NODEIP: ip}}})).await?;
        node.becomes(initialised()).when("once its provided IP is one of its machine's").await?;
    }
    Ok(())
}

/// One Node belongs to a machine of another provider. The other was initialised, and its machine is gone. A
/// CCM that ends because of the second is blocked by OBS-10, which reports that.
async fn continues_despite_the_unknown(cx: &CheckCx) -> Verdict {
    cx.addresses_are_refreshed_often()?;
    let elsewhere = cx.absent_machine(machine("elsewhere"));
    let foreign = elsewhere.node().provider_id(&format!("other://{}", elsewhere.name()));
    let foreign = cx.node(foreign).await?;
    let (lost, orphan) = joined(cx, machine("lost")).await?;
    lost.delete().await?;
    let nodes = (&foreign, &orphan);
    let quiet = nodes.keeps(both(stays_tainted(), present())).within(2 * Limits::STATUS_PERIOD + TOUCH_EVERY);
    quiet.when("as its machine is another provider's").await?;
    ccm_initialises_others(cx).await
}

/// The Node is held back by something other than its addresses, if the cloud can do that.
async fn refreshes_no_tainted_node(cx: &CheckCx) -> Verdict {
    cx.addresses_are_refreshed_often()?;
    let by_id = cx.cloud().shows_missing_ids() && cx.framework_has(30) && !cx.may_do_without_provider_ids();
    let node = if by_id {
        let (machine, _) = nameless(cx).await?;
        cx.node(machine.node()).await?
    } else {
        let [reported, provided] = ["192.0.2.10", "192.0.2.99"].map(|ip| cx.own_address(ip));
        let machine = cx.machine(machine("held").addresses(vec![address("InternalIP", &reported)])).await?;
        cx.node(machine.node().annotation(A_NODEIP, &provided)).await?
    };
    ccm_initialises_others(cx).await?;
    let quiet = node.keeps(untouched()).within(2 * Limits::STATUS_PERIOD + TOUCH_EVERY);
    quiet.when("while it is tainted and addresses are refreshed").await
}
