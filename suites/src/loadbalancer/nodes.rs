//! The node set behind load balancers (contract SVC-NODES).

use super::needs::{NODES_BEHIND_LB, RESYNC, STABLE};
use harness::check::{Before, Stop, Verdict};
use harness::cloud::Inventory;
use harness::cx::matchers::{addressed, initialised, one_balancer, targets};
use harness::cx::{Check, CheckCx, Machine, Node, Ready, Subject, load_balancer, machine};
use harness::k8s::L_EXCL;
use harness::probe::Matcher;
use serde_json::json;

const HANDLERS: &str = "k8s.io/cloud-provider service/controller.go node handlers";

pub(super) const CHECKS: &[Check] = &[
    Check::must(
        "SVC-NODES-01",
        "new Nodes become backends of every load balancer, each by itself and several at once",
        HANDLERS,
        |cx| Box::pin(adds_new_nodes(cx)),
    )
    .needs(NODES_BEHIND_LB)
    .since(28, RESYNC, BEFORE)
    // Any other Node that came would be a reason to look once more.
    .alone(),
    Check::must("SVC-NODES-02", "a deleted Node leaves every load balancer", HANDLERS, |cx| {
        Box::pin(removes_deleted_nodes(cx))
    })
    .needs(NODES_BEHIND_LB)
    .since(28, RESYNC, BEFORE),
    Check::must(
        "SVC-NODES-03",
        "the exclusion label takes a Node out, and its removal brings it back",
        "k8s.io/cloud-provider service/controller.go nodeIncludedPredicate",
        |cx| Box::pin(honours_the_exclusion_label(cx)),
    )
    .needs(NODES_BEHIND_LB)
    .since(28, RESYNC, BEFORE),
    Check::must(
        "SVC-NODES-04",
        "an exclusion label that reads as false does not exclude",
        "k8s.io/cloud-provider service/controller.go nodeIncludedPredicate (since v1.34)",
        |cx| Box::pin(includes_what_is_not_excluded(cx)),
    )
    .needs(NODES_BEHIND_LB)
    .since(34, "an exclusion label that reads as false includes", Before::NotJudged),
    Check::must(
        "SVC-NODES-05",
        "a Node that is not Ready any more stays a backend",
        "k8s.io/cloud-provider service/controller.go stableNodeSetPredicates; KEP-3458",
        |cx| Box::pin(keeps_unready_nodes(cx)),
    )
    .needs(NODES_BEHIND_LB)
    .since(27, STABLE, Before::NotJudged)
    .takes(46),
    Check::must(
        "SVC-NODES-06",
        "a Node that is cordoned stays a backend",
        "k8s.io/cloud-provider service/controller.go stableNodeSetPredicates",
        |cx| Box::pin(keeps_cordoned_nodes(cx)),
    )
    .needs(NODES_BEHIND_LB)
    .since(27, STABLE, Before::NotJudged)
    .takes(46),
];

const BEFORE: Before = Before::Otherwise("a Node is excluded by its label until it is initialised");

/// A Node that load balancers may use, with its machine. It is initialised and has its addresses, which the framework
/// writes last: whether one that gets ready while a load balancer is being made is found is a claim of its own
/// (SVC-NODES-08).
pub(super) async fn eligible<'a>(cx: &'a CheckCx, suffix: &str) -> Result<(Machine<'a>, Node<'a>), Stop> {
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

/// A Node that load balancers may use once its exclusion label is removed, for claims that are not about Nodes that join.
pub(super) async fn kept_out<'a>(cx: &'a CheckCx, suffix: &str) -> Result<(Machine<'a>, Node<'a>), Stop> {
    excluded(cx, cx.machine(machine(suffix)).await?).await
}

async fn excluded<'a>(cx: &'a CheckCx, machine: Machine<'a>) -> Result<(Machine<'a>, Node<'a>), Stop> {
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
        !targets(lb, &instance)
    })
}

async fn adds_new_nodes(cx: &CheckCx) -> Verdict {
    let first = cx.service(load_balancer("first").port(80)).await?.provisioned().await?;
    let second = cx.service(load_balancer("second").port(80)).await?.provisioned().await?;
    // One at a time: none that comes later is a reason to look once more at one that was missed.
    for suffix in ["single-1", "single-2", "single-3"] {
        let (machine, _) = eligible(cx, suffix).await?;
        first.balancer().becomes(has_backend(&machine)).when("after it joined alone").await?;
        second.balancer().becomes(has_backend(&machine)).when("after it joined alone").await?;
    }
    // Several at once: of events that come close together none may be lost.
    let mut machines = Vec::new();
    for suffix in ["new-1", "new-2", "new-3", "new-4", "new-5"] {
        machines.push(eligible(cx, suffix).await?.0);
    }
    for machine in &machines {
        first.balancer().becomes(has_backend(machine)).when("after five Nodes joined").await?;
        second.balancer().becomes(has_backend(machine)).when("after five Nodes joined").await?;
    }
    Ok(())
}

async fn includes_what_is_not_excluded(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "labelled").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let balancer = web.balancer();
    for value in ["false", "0", "f"] {
        node.label(L_EXCL, Some("")).await?;
        balancer.becomes(lacks_backend(&machine)).when("while it is excluded").await?;
        node.label(L_EXCL, Some(value)).await?;
        balancer.becomes(has_backend(&machine)).when(format!("once the label says {value:?}")).await?;
    }
    Ok(())
}

async fn keeps_unready_nodes(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "unready").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.balancer().becomes(has_backend(&machine)).when("while the Node is Ready").await?;
    node.set_ready(Ready::False).await?;
    let balancer = web.balancer();
    let kept = balancer.keeps(has_backend(&machine)).within(cx.limits().quiet_services());
    kept.when("though the Node is not Ready").await
}

async fn keeps_cordoned_nodes(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "cordoned").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.balancer().becomes(has_backend(&machine)).when("before the Node is cordoned").await?;
    node.patch(&json!({"spec": {"unschedulable": true}})).await?;
    let balancer = web.balancer();
    let kept = balancer.keeps(has_backend(&machine)).within(cx.limits().quiet_services());
    kept.when("though the Node is cordoned").await
}

async fn removes_deleted_nodes(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "leaving").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.balancer().becomes(has_backend(&machine)).when("while the Node is there").await?;
    node.delete().await?;
    web.balancer().becomes(lacks_backend(&machine)).when("after the Node's deletion").await
}

async fn honours_the_exclusion_label(cx: &CheckCx) -> Verdict {
    let (machine, node) = eligible(cx, "labelled").await?;
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let balancer = web.balancer();
    balancer.becomes(has_backend(&machine)).when("while the Node has no label").await?;
    for value in ["", "true", "1", "yes"] {
        node.label(L_EXCL, Some(value)).await?;
        balancer.becomes(lacks_backend(&machine)).when(format!("once the label is {value:?}")).await?;
        node.label(L_EXCL, None).await?;
        balancer
            .becomes(has_backend(&machine))
            .when(format!("once the label ({value:?}) is removed"))
            .await?;
    }
    Ok(())
}
