//! Node lifecycle: Nodes of machines that are gone are deleted, all others are not (contract NODE-LIFE).

mod events;
mod info;
mod known_node;
mod left_alone;
mod lists;

use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use known_node::{INSTANCES, SHUTDOWN, known, marked, register, sees_deletion, unmarked};
use std::time::Duration;
use suites_common::failures::{FAILURES, for_each_failure, holding_up_a_loop, unless_it_lists};

/// The suite of Node lifecycle.
pub const SUITE: Suite = Suite {
    name: "node-lifecycle",
    proves: "a Node is deleted if its machine is certainly gone, and never otherwise; Nodes of stopped machines are marked",
    judges: Party::Ccm,
    tables: &[CHECKS, left_alone::CHECKS, events::CHECKS, info::CHECKS, &FAILED_LOOKUPS, &lists::CHECKS],
};

const CHECKS: &[Check] = &[
    Check::of("NODE-LIFE-01", |cx| Box::pin(keeps_ready_nodes(cx))).needs(INSTANCES).takes(25),
    Check::of(Blocker::KeepsNodes.check(), |cx| Box::pin(keeps_the_clusters_nodes(cx)))
        .needs(INSTANCES)
        .of_the_cloud(&[])
        .with(&[Facility::CcmControl, Facility::KubeletControl])
        .after_the_run(),
    Check::of("NODE-LIFE-02", |cx| Box::pin(deletes_gone_nodes(cx))).needs(INSTANCES).takes(15),
    Check::of("NODE-LIFE-12", |cx| Box::pin(changes_no_instance(cx))).by_calls().needs(INSTANCES).takes(15),
    Check::of("NODE-LIFE-04", |cx| Box::pin(keeps_stopped_nodes(cx))).needs(INSTANCES).takes(25),
    Check::of("NODE-LIFE-05", |cx| Box::pin(marks_stopped_nodes(cx))).needs(SHUTDOWN).takes(15),
    Check::of("NODE-LIFE-05.meanwhile", |cx| Box::pin(keeps_taints_of_others(cx)))
        .needs(SHUTDOWN)
        .with(&[Facility::Barriers])
        .holds_up_a_loop()
        .takes(20),
    Check::of("NODE-LIFE-06", |cx| Box::pin(unmarks_ready_nodes(cx))).needs(SHUTDOWN).takes(10),
];

// A failed look-up, and the client's retries, keep the lifecycle loop from all other Nodes.
const FAILED_LOOKUPS: [Check; FAILURES.len()] =
    holding_up_a_loop(for_each_failure("NODE-LIFE-03", 30, |cx, failure| {
        Box::pin(keeps_nodes_on_errors(cx, failure))
    }));

async fn keeps_ready_nodes(cx: &CheckCx) -> Verdict {
    let (ready, node) = known(cx, "ready", Ready::True).await?;
    let (witness, witness_node) = known(cx, "witness", Ready::False).await?;
    ready.delete().await?;
    sees_deletion(cx, &witness, &witness_node).await?;
    node.keeps(present()).within(cx.limits().quiet_life()).when("though its machine is gone").await
}

async fn keeps_the_clusters_nodes(cx: &CheckCx) -> Verdict {
    cx.own_nodes().is(all_stay()).await?;
    cx.ccm_runs().await?;
    cx.own_nodes().is(all_stay()).await
}

async fn deletes_gone_nodes(cx: &CheckCx) -> Verdict {
    let (_, bystander) = known(cx, "other", Ready::False).await?;
    // A dead kubelet's Node is Unknown, a sick one's is False, and one that never reported has no condition at all
    // (contract fact 11).
    let mut nodes = Vec::new();
    for (suffix, ready) in [("unknown", Ready::Unknown), ("false", Ready::False), ("absent", Ready::Absent)] {
        let (machine, node) = known(cx, suffix, ready).await?;
        machine.delete().await?;
        nodes.push(node);
    }
    for node in &nodes {
        node.becomes(gone())
            .within(cx.limits().life_of_machine())
            .when("after its machine, as it is NotReady")
            .await?;
    }
    bystander.keeps(present()).within(cx.limits().life()).when("as its machine is there").await
}

async fn changes_no_instance(cx: &CheckCx) -> Verdict {
    let mark = cx.cloud().mark()?;
    let (stopped, marked_node) = known(cx, "stopped", Ready::False).await?;
    let (_, unwanted) = known(cx, "unwanted", Ready::False).await?;
    let (gone, gone_node) = known(cx, "gone", Ready::False).await?;
    stopped.stop().await?;
    unwanted.delete().await?;
    sees_deletion(cx, &gone, &gone_node).await?;
    marked_node.keeps(present()).within(cx.limits().life()).when("though its machine is stopped").await?;
    // Whichever check the calls belong to.
    cx.cloud().calls().of(&[Op::InstanceWrite]).since(mark).is(no_calls()).await
}

async fn keeps_nodes_on_errors(cx: &CheckCx, failure: usize) -> Verdict {
    let failure = &FAILURES[failure];
    let machine = cx.machine(machine("a")).await?;
    let fault =
        machine.cloud().meets(failure.name, failure.effects).to(&[Op::InstanceGet, Op::InstanceList]).await?;
    let node = register(cx, &machine, Ready::False).await?;
    let limit = cx.limits().life() + cx.limits().watch();
    fault.becomes(met_by(1)).within(limit).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let quiet = node.keeps(present()).within(cx.limits().quiet_life());
    quiet.when("while its machine cannot be looked up").await?;
    // The failures were met by the lifecycle loop, not only by the refresh of addresses: the loop works on
    // this Node.
    fault.clear().await?;
    sees_deletion(cx, &machine, &node).await
}

async fn keeps_stopped_nodes(cx: &CheckCx) -> Verdict {
    let (stopped, node) = known(cx, "stopped", Ready::False).await?;
    let (witness, witness_node) = known(cx, "witness", Ready::False).await?;
    stopped.stop().await?;
    sees_deletion(cx, &witness, &witness_node).await?;
    node.keeps(present()).within(cx.limits().quiet_life()).when("though its machine is stopped").await
}

async fn marks_stopped_nodes(cx: &CheckCx) -> Verdict {
    let (stopped, node) = known(cx, "a", Ready::False).await?;
    stopped.stop().await?;
    node.becomes(marked()).within(cx.limits().life_of_machine()).await?;
    // Two more passes of the loop must not add the taint again.
    node.keeps(marked()).within(cx.limits().life()).await
}

/// How much longer than one period of the lifecycle loop a look-up is held. This ensures that the lifecycle
/// loop is what waits.
const ARRIVES: Duration = Duration::from_secs(1);

async fn keeps_taints_of_others(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "a", Ready::False).await?;
    let look_up = machine.cloud().holds(&[Op::InstanceGet]).await?;
    machine.stop().await?;
    let limit = cx.limits().life() + cx.limits().watch();
    let held = look_up.becomes(holds("holds a call", |waiting: &u64| *waiting > 0)).within(limit);
    held.await.map_err(|stop| unless_it_lists(cx, stop))?;
    // The refresh of addresses may have come first. The cluster's own controllers have set their taints by then.
    pause(cx.limits().life() / 2 + ARRIVES).await;
    node.adds_taint(taint("example.com/z", "1", "NoSchedule")).await?;
    look_up.release().await?;
    let limit = cx.limits().life_of_machine();
    node.becomes(marked()).within(limit).when("though others tainted it meanwhile").await?;
    let history = node.history()?;
    let Some((before, after)) = marking(&history) else {
        return Err(CheckError::Error("the watch's history lost the write that marked the Node".to_owned()));
    };
    match (before.iter().any(|taint| taint == OTHERS), after.iter().any(|taint| taint == OTHERS)) {
        (true, true) => Ok(()),
        (true, false) => {
            let promise = "the write that marks it as shut down leaves all other taints as they are";
            Err(node.breaks(promise, &before.join(", "), &after.join(", ")))
        }
        (false, _) => Err(CheckError::Error(format!("{OTHERS} was gone before the Node was marked"))),
    }
}

/// A taint that another client sets while the loop waits.
const OTHERS: &str = "example.com/z=1:NoSchedule";

/// The taints before and after the write that marked a Node as shut down. A taint that this write removes may
/// come back with a later write.
fn marking(history: &[Version<core::Node>]) -> Option<(Vec<String>, Vec<String>)> {
    let applied = history.iter().filter(|version| version.change == Change::Applied);
    let all: Vec<Vec<String>> = applied.map(|version| taints(&version.object)).collect();
    let is_marked = |taints: &[String]| taints.iter().any(|taint| taint.starts_with(T_SHUT));
    let pair = all.windows(2).find(|pair| !is_marked(&pair[0]) && is_marked(&pair[1]))?;
    Some((pair[0].clone(), pair[1].clone()))
}

async fn unmarks_ready_nodes(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "a", Ready::False).await?;
    machine.stop().await?;
    node.becomes(marked()).within(cx.limits().life_of_machine()).await?;
    machine.start().await?;
    node.set_ready(Ready::True).await?;
    node.becomes(unmarked()).within(cx.limits().life()).when("once it is Ready").await
}
