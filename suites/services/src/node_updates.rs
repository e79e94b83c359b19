//! Load balancers follow their Nodes although something is in the way: a failing update, a Node that the
//! cloud does not know, or no Node at all (contract SVC-NODES, SVC-CREATE-15).

use super::needs::{LB_TO_NODES, NODES_BEHIND_LB};
use super::nodes::{eligible, has_backend, kept_out, lacks_backend, of_each_policy};
use super::retry::{HELD, broken_names, fails_for};
use futures::future::{try_join, try_join_all};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-NODES-07.next-sync", |cx| Box::pin(leaves_condemned_nodes_out(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB),
    Check::of("SVC-NODES-08", |cx| Box::pin(follows_a_late_provider_id(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        // Any other new Node would be a reason for an update.
        .alone(),
    Check::of("SVC-NODES-09", |cx| Box::pin(follows_despite_an_unknown_node(cx)))
        .needs(NODES_BEHIND_LB)
        // A CCM that fails over such a Node would fail in every other check as well.
        .alone(),
    Check::of("SVC-NODES-11", |cx| Box::pin(repeats_a_failed_update(cx, |web| web.cloud().fails())))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Faults])
        // Another Node would cause a repetition of its own.
        .alone()
        .takes(17),
    Check::of("SVC-NODES-11.action", |cx| {
        Box::pin(repeats_a_failed_update(cx, |web| web.cloud().fails_actions()))
    })
    .by_calls()
    .needs(NODES_BEHIND_LB)
    .with(&[Facility::Faults, Facility::Settings])
    .alone()
    .takes(17),
    Check::of("SVC-NODES-13", |cx| Box::pin(one_failure_stops_no_other(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Faults])
        .alone(),
    Check::of("SVC-NODES-15", |cx| Box::pin(leaves_control_planes_out(cx))).needs(NODES_BEHIND_LB),
    Check::of("SVC-CREATE-15", |cx| Box::pin(provisions_without_nodes(cx))).needs(LB_TO_NODES).alone(),
];

async fn leaves_condemned_nodes_out(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "condemned").await?;
    let all = of_each_policy(cx).await?;
    for web in &all {
        web.balancer().becomes(has_backend(&machine)).when("without a taint").await?;
    }
    node.adds_taint(taint(T_TO_BE_DELETED, "1", "NoSchedule")).await?;
    try_join_all(all.iter().map(Service::rests)).await?;
    for web in &all {
        web.patch(&json!({"metadata": {"annotations": {"example.com/edited": "1"}}})).await?;
        web.balancer().becomes(lacks_backend(&machine)).when("at the next sync of its Service").await?;
    }
    Ok(())
}

async fn follows_a_late_provider_id(cx: &CheckCx) -> Verdict {
    // Until the cloud knows the machine, its Node cannot be initialised and has no providerID.
    let late = ["late", "later"].map(|suffix| cx.absent_machine(machine(suffix)));
    let unknown_since = Instant::now();
    let nodes = [cx.node(late[0].node().backend()).await?, cx.node(late[1].node().backend()).await?];
    let all = of_each_policy(cx).await?;
    try_join_all(all.iter().map(Service::rests)).await?;
    // Two, as a CCM whose look comes before the Node's addresses may find the one in time by chance.
    for (late, node) in late.iter().zip(&nodes) {
        late.appears().await?;
        // The CCM's pauses have grown for as long as the machine was unknown.
        let outage = unknown_since.elapsed().max(cx.limits().watch());
        node.becomes(initialised()).within(cx.limits().nodes_after(outage)).await?;
        for web in &all {
            web.balancer().becomes(has_backend(late)).when("once its Node has a providerID").await?;
        }
    }
    Ok(())
}

async fn follows_despite_an_unknown_node(cx: &CheckCx) -> Verdict {
    let unknown = cx.absent_machine(machine("unknown"));
    cx.node(unknown.node().backend()).await?;
    // The Node has been initialised, and its kubelet has not noticed yet that the machine is gone.
    let gone = cx.absent_machine(machine("gone"));
    cx.node(gone.initialised_node().backend()).await?;
    let (machine, node) = kept_out(cx, "known").await?;
    let all = of_each_policy(cx).await?;
    node.label(L_EXCL, None).await?;
    for web in &all {
        let follows = web.balancer();
        let follows = follows.becomes(has_backend(&machine));
        follows.when("next to Nodes that the cloud does not know").await?;
    }
    Ok(())
}

/// Calls that change the backends of a load balancer.
const UPDATE: &[Op] = &[Op::LbUpdate];

/// A fault for the calls about a load balancer.
type Trouble = for<'a> fn(&Service<'a>) -> FaultPlan<'a>;

/// Replaces one Node by another, so that the number of backends stays the same while the backends change.
async fn repeats_a_failed_update(cx: &CheckCx, trouble: Trouble) -> Verdict {
    let (old_machine, old) = eligible(cx, "replaced").await?;
    let (machine, node) = kept_out(cx, "admitted").await?;
    let all = of_each_policy(cx).await?;
    try_join_all(all.iter().map(Service::rests)).await?;
    let mut troubled = Vec::new();
    for web in &all {
        web.balancer().becomes(has_backend(&old_machine)).await?;
        troubled.push((web, trouble(web).to(UPDATE).await?));
    }
    try_join(node.label(L_EXCL, None), old.label(L_EXCL, Some(""))).await?;
    try_join_all(troubled.into_iter().map(async |(web, refusals)| {
        let failing = fails_for(web, &refusals, UPDATE, 3, HELD).await;
        let replaced = async {
            web.balancer().is(has_backend(&machine)).await?;
            web.balancer().is(lacks_backend(&old_machine)).await
        };
        refusals.unless_needless(failing, replaced).await?;
        refusals.clear().await
    }))
    .await?;
    for web in &all {
        // One worker may update one after the other.
        let limit = cx.limits().service_after(3) + cx.limits().load_balancer_work();
        let balancer = web.balancer();
        balancer.becomes(has_backend(&machine)).within(limit).when("though its update failed").await?;
        balancer.becomes(lacks_backend(&old_machine)).when("though its update failed").await?;
    }
    Ok(())
}

async fn one_failure_stops_no_other(cx: &CheckCx) -> Verdict {
    let nodes = [kept_out(cx, "first").await?, kept_out(cx, "second").await?];
    let names = broken_names(cx);
    let broken = try_join_all(names.iter().map(|name| cx.service(load_balancer(name).port(80)))).await?;
    for one in &broken {
        one.gets_published().await?;
    }
    let others = of_each_policy(cx).await?;
    try_join_all(broken.iter().chain(&others).map(Service::rests)).await?;
    let refusals = broken.iter().map(async |one| one.cloud().fails().to(UPDATE).await);
    let refusals = try_join_all(refusals).await?;
    // All of them may come first, each with the client's own retries.
    let limit = cx.limits().watch() + HELD;
    for (machine, node) in &nodes {
        node.label(L_EXCL, None).await?;
        // The second change is made after the failures of the other Services have been seen.
        try_join_all(broken.iter().zip(&refusals).map(async |(service, one)| {
            let met = one.becomes(met_by(1)).within(limit).await;
            one.unless_needless(met, service.balancer().is(has_backend(machine))).await
        }))
        .await?;
        for web in &others {
            let follows = web.balancer();
            let follows = follows.becomes(has_backend(machine)).within(limit);
            follows.when("while others cannot be updated").await?;
        }
    }
    Ok(())
}

async fn leaves_control_planes_out(cx: &CheckCx) -> Verdict {
    let control_plane = cx.machine(machine("control-plane")).await?;
    let plan = control_plane.node().label("node-role.kubernetes.io/control-plane", "").label(L_EXCL, "");
    cx.node(plan).await?.becomes(initialised()).await?;
    // A Node that is a backend shows that the CCM has processed both.
    let (worker, _) = eligible(cx, "worker").await?;
    for web in of_each_policy(cx).await? {
        web.balancer().becomes(has_backend(&worker)).await?;
        web.balancer().is(lacks_backend(&control_plane)).await?;
    }
    Ok(())
}

async fn provisions_without_nodes(cx: &CheckCx) -> Verdict {
    cx.condemn_all_nodes().await?;
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    // The harness watches Nodes and Services, and may see these changes first.
    web.rests().await?;
    web.wants_a_balancer().await?;
    let balancer = web.balancer();
    let limit = cx.limits().load_balancer();
    let lb = balancer.becomes(one_active()).within(limit).when("with no Node behind it").await?;
    web.becomes(publishes(&lb)).await?;
    if balancer.read(ReadSource::Origin).await?.load_balancers.iter().any(|lb| !lb.backends.is_empty()) {
        let why = "the CCM has a use for Nodes that the autoscaler has condemned: see SVC-NODES-07";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    let machine = cx.machine(machine("first")).await?;
    cx.node(machine.initialised_node().backend()).await?;
    balancer.becomes(serves_by(&machine)).when("once there is a Node").await
}

/// Matches a load balancer that has a port and sends its traffic to this machine.
fn serves_by(machine: &Machine<'_>) -> Matcher<Inventory> {
    let instance = machine.instance();
    one_balancer(format!("has ports, and {} among its backends", instance.id), move |lb| {
        !lb.frontends.is_empty() && targets(lb, &instance)
    })
}
