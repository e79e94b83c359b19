//! An upgrade changes nothing about load balancers and routes, and nothing that others have written (contract UPG-02, UPG-04,
//! UPG-08, UPG-09).

use super::rollout::{LB, WATCHED, looks_at, served, upgraded};
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{Node as NodeObject, Service as ServiceObject};
use kube::ResourceExt;
use serde_json::json;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-02.kept", |cx| Box::pin(keeps_load_balancers(cx)))
        .needs(LB)
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-02.status", |cx| Box::pin(keeps_their_status(cx)))
        .needs(LB)
        .by_calls()
        .without_machines()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-02.writes", |cx| Box::pin(loses_nothing_on_the_way(cx)))
        .needs(LB)
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-04", |cx| Box::pin(keeps_routes(cx)))
        .needs(&[Capability::Routes])
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(20),
    Check::of("UPG-08", |cx| Box::pin(keeps_what_others_wrote(cx)))
        .needs(LB)
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-09", |cx| Box::pin(writes_nothing_in_vain(cx)))
        .needs(LB)
        .by_calls()
        .without_machines()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
];

/// What clients of a load balancer depend on: where it listens, for whom, and where it sends them.
pub(super) fn unchanged(before: &LoadBalancer) -> Matcher<Inventory> {
    let wanted = before.clone();
    no_other_than(before, "has the listeners, backends and source ranges from before", move |held| {
        held.load_balancers.iter().all(|lb| {
            lb.frontends == wanted.frontends
                && lb.source_ranges == wanted.source_ranges
                && lb.health_check.is_some() == wanted.health_check.is_some()
                && wanted.backends.iter().all(|backend| lb.backends.contains(backend))
        })
    })
}

/// Creates a machine with a Node behind all load balancers.
pub(super) async fn has_a_backend(cx: &CheckCx) -> Result<Node<'_>, CheckError> {
    let machine = cx.machine(machine("a")).await?;
    if !cx.declares(Capability::Instances) {
        return cx.node(machine.initialised_node().backend()).await;
    }
    let node = cx.node(machine.node().backend()).await?;
    node.becomes(initialised()).await?;
    Ok(node)
}

/// The load balancers that the old release has made, once the new one has looked at each of them.
async fn served_across_an_upgrade(
    cx: &CheckCx,
) -> Result<(Vec<(Service<'_>, LoadBalancer)>, Rollout<'_>), CheckError> {
    let all = served(cx).await?;
    let rollout = upgraded(cx).await?;
    for (web, _) in &all {
        looks_at(cx, web, &rollout, Release::New).await?;
    }
    Ok((all, rollout))
}

async fn keeps_load_balancers(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    if cx.declares(Capability::NodeTargets) {
        has_a_backend(cx).await?;
    }
    let (all, rollout) = served_across_an_upgrade(cx).await?;
    for (web, before) in &all {
        web.balancer().keeps(unchanged(before)).within(WATCHED).when("after the upgrade").await?;
        web.calls().of(&[Op::LbCreate, Op::LbDelete]).since(rollout.mark).is(no_calls()).await?;
    }
    Ok(())
}

async fn keeps_their_status(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let (all, rollout) = served_across_an_upgrade(cx).await?;
    for (web, before) in &all {
        web.keeps(publishes(before)).within(WATCHED).when("after the upgrade").await?;
        let published = publishes(before);
        let left = |version: &Version<ServiceObject>| {
            published.matches(&Some(version.object.clone())) == Observation::Matched(())
        };
        let history = web.history()?;
        let changed = history.iter().find(|version| version.at >= rollout.at && !left(version));
        if let Some(version) = changed {
            return Err(web.breaks(
                "its status is left as it is by an upgrade",
                "the addresses from before in every version",
                &Some(version.object.clone()).observed(),
            ));
        }
    }
    Ok(())
}

async fn loses_nothing_on_the_way(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    if cx.declares(Capability::NodeTargets) {
        has_a_backend(cx).await?;
    }
    let (all, rollout) = served_across_an_upgrade(cx).await?;
    pause(WATCHED).await;
    for (web, _) in &all {
        let rules = [Rule::Backends, Rule::Addresses, Rule::Settings, Rule::Firewall];
        let losses = web.losses_since(rollout.at, &rules);
        losses.can_be_seen().await?;
        losses.is(nothing_lost()).await?;
    }
    Ok(())
}

async fn keeps_routes(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let (network, machine) = (cx.pod_network(0)?, cx.machine(machine("a")).await?);
    cx.node(machine.node().pod_cidrs(&[&network.cidr()])).await?;
    let route = network.becomes(leads_to(&machine.instance())).within(cx.limits().route()).await?;
    let rollout = upgraded(cx).await?;
    network.keeps(keeps_route(&route)).within(cx.limits().quiet_routes()).when("after the upgrade").await?;
    let id = route.id.clone();
    let its = move |call: &Entry| call.resource.as_ref() == Some(&id);
    cx.cloud().calls().of(&[Op::RouteDelete]).since(rollout.mark).that(its).is(no_calls()).await?;
    let cidr = network.cidr();
    let again = cx.cloud().calls().of(&[Op::RouteCreate]).since(rollout.mark);
    again.that(move |call| call.request.contains(&cidr)).is(no_calls()).await
}

/// A condition, a label, an annotation and a finalizer that no CCM knows.
const OTHERS: &str = "example.com/of-another-controller";

async fn keeps_what_others_wrote(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let web = cx.service(load_balancer("web").port(80).finalizer(OTHERS)).await?;
    web.gets_published().await?;
    let machine = cx.machine(machine("a")).await?;
    let node = cx.node(machine.node()).await?;
    if cx.declares(Capability::Instances) {
        node.becomes(initialised()).await?;
    }
    web.patch(&json!({"metadata": {"labels": {OTHERS: "1"}, "annotations": {OTHERS: "1"}}})).await?;
    let condition = json!({"type": OTHERS, "status": "True", "reason": "Other", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    web.patch_status(&json!({"status": {"conditions": [condition]}})).await?;
    node.label(OTHERS, Some("1")).await?;
    node.patch(&json!({"metadata": {"annotations": {OTHERS: "1"}}})).await?;
    node.reports(OTHERS, "True").await?;
    web.rests().await?;
    let rollout = upgraded(cx).await?;
    looks_at(cx, &web, &rollout, Release::New).await?;
    // An edit makes it write both spec and status.
    web.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await?;
    let follows = one_balancer("follows an edit", |lb| lb.frontends.iter().any(|port| port.port == 8080));
    web.balancer().becomes(follows).within(cx.limits().load_balancer()).when("by the new release").await?;
    web.rests().await?;
    web.keeps(has_all_of_the_service()).within(WATCHED).when("after the upgrade").await?;
    node.is(has_all_of_the_node()).await?;
    // No controller removes that finalizer.
    web.delete().await?;
    web.becomes(lacks_finalizer()).within(cx.limits().load_balancer()).await?;
    web.patch(&json!({"metadata": {"finalizers": null}})).await
}

/// Matches a Service that still has what another controller has written.
fn has_all_of_the_service() -> Matcher<Option<Arc<ServiceObject>>> {
    holds("keeps what another controller has written", |service: &Option<Arc<ServiceObject>>| {
        service.as_ref().is_some_and(|service| {
            let conditions = service.status.iter().flat_map(|status| status.conditions.iter().flatten());
            service.labels().contains_key(OTHERS)
                && service.annotations().contains_key(OTHERS)
                && service.finalizers().iter().any(|finalizer| finalizer == OTHERS)
                && conditions.into_iter().any(|condition| condition.type_ == OTHERS)
        })
    })
    .expecting(format!("label, annotation, finalizer and condition {OTHERS}"))
}

/// Matches a Node that still has what another controller has written.
fn has_all_of_the_node() -> Matcher<Option<Arc<NodeObject>>> {
    holds("keeps what another controller has written", |node: &Option<Arc<NodeObject>>| {
        node.as_ref().is_some_and(|node| {
            label(node, OTHERS).is_some()
                && node.annotations().contains_key(OTHERS)
                && condition(node, OTHERS).is_some()
        })
    })
    .expecting(format!("label, annotation and condition {OTHERS}"))
}

async fn writes_nothing_in_vain(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let (all, rollout) = served_across_an_upgrade(cx).await?;
    for (web, _) in &all {
        let writes = web.calls().writes().since(rollout.mark);
        writes.keeps(no_calls()).within(WATCHED).when("as the new release starts").await?;
    }
    Ok(())
}
