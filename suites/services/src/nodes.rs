//! The set of Nodes behind load balancers (contract SVC-NODES).

use super::needs::NODES_BEHIND_LB;
use futures::future::try_join_all;
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-NODES-01", |cx| Box::pin(adds_new_nodes(cx)))
        .needs(NODES_BEHIND_LB)
        // Any other new Node would be a reason for another update. The same applies to the checks below.
        .alone(),
    Check::of("SVC-NODES-02", |cx| Box::pin(removes_deleted_nodes(cx))).needs(NODES_BEHIND_LB).alone(),
    Check::of("SVC-NODES-03", |cx| Box::pin(honours_the_exclusion_label(cx))).needs(NODES_BEHIND_LB).alone(),
    Check::of("SVC-NODES-03.pages", |cx| Box::pin(leaves_them_on_any_page(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Settings])
        .alone(),
    Check::of("SVC-NODES-04", |cx| Box::pin(includes_what_is_not_excluded(cx)))
        .needs(NODES_BEHIND_LB)
        .alone(),
];

/// Creates a machine and an eligible Node. The Node is initialised and has its addresses, which the framework
/// writes last. Whether a Node that becomes ready while a load balancer is being created is found is a claim
/// of its own (SVC-NODES-08).
pub(super) async fn eligible<'a>(
    cx: &'a CheckCx,
    suffix: &str,
) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    let machine = cx.machine(machine(suffix)).await?;
    if cx.framework_has(28) {
        let node = cx.node(machine.node().backend()).await?;
        node.becomes(initialised()).await?;
        node.becomes(addressed()).await?;
        return Ok((machine, node));
    }
    let (machine, node) = excluded(cx, machine).await?;
    node.label(L_EXCL, None).await?;
    Ok((machine, node))
}

/// A Service of each traffic policy, with its load balancer: Nodes are behind both.
pub(super) async fn of_each_policy(cx: &CheckCx) -> Result<Vec<Service<'_>>, CheckError> {
    let plans = [("web", "Cluster"), ("local", "Local")].map(|(name, policy)| {
        let policy = Some(policy.to_owned());
        cx.service(load_balancer(name).port(80).with(move |spec| spec.external_traffic_policy = policy))
    });
    let made = try_join_all(plans).await?;
    try_join_all(made.into_iter().map(|web| web.provisioned())).await
}

/// The same number, joining at the same moment.
async fn eligible_at_once<'a>(cx: &'a CheckCx, suffixes: &[&str]) -> Result<Vec<Machine<'a>>, CheckError> {
    let mut machines = Vec::new();
    for suffix in suffixes {
        machines.push(cx.machine(machine(suffix)).await?);
    }
    let at_once = cx.framework_has(28);
    let plan = |machine: &Machine<'a>| if at_once { machine.node().backend() } else { machine.node() };
    let nodes = try_join_all(machines.iter().map(|machine| cx.node(plan(machine)))).await?;
    for node in &nodes {
        node.becomes(initialised()).await?;
        node.becomes(addressed()).await?;
    }
    if !at_once {
        try_join_all(nodes.iter().map(|node| node.label(L_EXCL, None))).await?;
    }
    Ok(machines)
}

/// Creates a Node that becomes eligible when its exclusion label is removed, for claims that are not about
/// Nodes that join.
pub(super) async fn kept_out<'a>(
    cx: &'a CheckCx,
    suffix: &str,
) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    excluded(cx, cx.machine(machine(suffix)).await?).await
}

async fn excluded<'a>(cx: &'a CheckCx, machine: Machine<'a>) -> Result<(Machine<'a>, Node<'a>), CheckError> {
    let node = cx.node(machine.node()).await?;
    node.becomes(initialised()).await?;
    node.becomes(addressed()).await?;
    Ok((machine, node))
}

pub(super) fn has_backend(machine: &Machine<'_>) -> Matcher<Inventory> {
    let instance = machine.instance();
    one_balancer(format!("has {} among its backends", instance.id), move |lb| targets(lb, &instance))
}

pub(super) fn lacks_backend(machine: &Machine<'_>) -> Matcher<Inventory> {
    let instance = machine.instance();
    one_balancer(format!("does not have {} among its backends", instance.id), move |lb| {
        !reaches(lb, &instance)
    })
}

async fn adds_new_nodes(cx: &CheckCx) -> Verdict {
    let first = cx.service(load_balancer("first").port(80)).await?.provisioned().await?;
    let second = cx.service(load_balancer("second").port(80)).await?.provisioned().await?;
    // One at a time: no later Node causes an update that would include one that was missed.
    for suffix in ["single-1", "single-2", "single-3"] {
        let (machine, _) = eligible(cx, suffix).await?;
        first.balancer().becomes(has_backend(&machine)).when("after it joined alone").await?;
        second.balancer().becomes(has_backend(&machine)).when("after it joined alone").await?;
    }
    // Several at once: none of the events may be lost, neither those that come close together nor those
    // during a write of backends.
    let slow = Effect::Latency { ms: 1_000 };
    let slow = match cx.makes_faults() {
        true => {
            let updates = first.cloud().meets("updates that take 1 s", &[slow]).to(&[Op::LbUpdate]);
            Some(updates.await?)
        }
        false => None,
    };
    let machines = eligible_at_once(cx, &["new-1", "new-2", "new-3", "new-4", "new-5"]).await?;
    if let Some(slow) = slow {
        slow.clear().await?;
    }
    for machine in &machines {
        first.balancer().becomes(has_backend(machine)).when("after five Nodes joined").await?;
        second.balancer().becomes(has_backend(machine)).when("after five Nodes joined").await?;
    }
    Ok(())
}

async fn includes_what_is_not_excluded(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "labelled").await?;
    let all = of_each_policy(cx).await?;
    for value in ["false", "0", "f", "F", "False", "FALSE"] {
        node.label(L_EXCL, Some("")).await?;
        for web in &all {
            web.balancer().becomes(lacks_backend(&machine)).when("while it is excluded").await?;
        }
        node.label(L_EXCL, Some(value)).await?;
        for web in &all {
            let follows = web.balancer();
            let follows = follows.becomes(has_backend(&machine));
            follows.when(format!("once the label says '{value}'")).await?;
        }
    }
    Ok(())
}

async fn removes_deleted_nodes(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "leaving").await?;
    let web = cx.service(load_balancer("web").port(80).port(443)).await?.provisioned().await?;
    web.balancer().becomes(has_backend(&machine)).when("while the Node is there").await?;
    node.delete().await?;
    web.balancer().becomes(lacks_backend(&machine)).when("after the Node's deletion").await
}

async fn leaves_them_on_any_page(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "labelled").await?;
    let names = ["first", "second"];
    let all = names.map(|name| cx.service(load_balancer(name).port(80).port(443)));
    let all = try_join_all(try_join_all(all).await?.into_iter().map(|web| web.provisioned())).await?;
    for web in &all {
        web.balancer().becomes(has_backend(&machine)).when("while the Node has no label").await?;
        web.rests().await?;
    }
    cx.cloud().comes_in_pages_of(1).await?;
    node.label(L_EXCL, Some("")).await?;
    for web in &all {
        let left = web.balancer();
        let left = left.becomes(lacks_backend(&machine)).within(cx.limits().service_after(1));
        left.when("once it is excluded, while lists come in pages of one").await?;
    }
    Ok(())
}

async fn honours_the_exclusion_label(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "labelled").await?;
    let web = cx.service(load_balancer("web").port(80).port(443)).await?.provisioned().await?;
    let balancer = web.balancer();
    balancer.becomes(has_backend(&machine)).when("while the Node has no label").await?;
    for value in ["", "true", "1", "yes"] {
        node.label(L_EXCL, Some(value)).await?;
        balancer.becomes(lacks_backend(&machine)).when(format!("once the label is '{value}'")).await?;
        node.label(L_EXCL, None).await?;
        balancer
            .becomes(has_backend(&machine))
            .when(format!("once the label ('{value}') is removed"))
            .await?;
    }
    Ok(())
}
