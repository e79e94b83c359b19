//! Nodes that are neither deleted nor marked as shut down, and effects of one Node that must not reach
//! another (contract NODE-LIFE-03, -08, -09, -10, -13, -14, -17, NODE-INIT-08).

use super::known_node::{INSTANCES, SHUTDOWN, known, marked, register, sees_deletion, unmarked};
use harness_testkit::prelude::*;
use suites_common::failures::{PATIENCE, every_other_fails, no_answer, unless_it_lists};

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-LIFE-08", |cx| Box::pin(leaves_running_machines(cx))).needs(INSTANCES).takes(25),
    Check::of("NODE-LIFE-09", |cx| Box::pin(leaves_ready_nodes(cx))).needs(INSTANCES).takes(25),
    Check::of("NODE-LIFE-10", |cx| Box::pin(marks_nothing_on_errors(cx)))
        .needs(SHUTDOWN)
        .with(&[Facility::Faults])
        .holds_up_a_loop()
        .next_to_claims_of("NODE-LIFE-03")
        .takes(25),
    Check::of("NODE-LIFE-03.client-timeout", |cx| Box::pin(keeps_nodes_in_silence(cx)))
        .needs(INSTANCES)
        .with(&[Facility::Faults])
        .hanging()
        .holds_up_a_loop()
        .takes(60),
    Check::of("NODE-LIFE-13", |cx| Box::pin(deletes_no_namesake(cx))).needs(INSTANCES).takes(20),
    Check::of("NODE-INIT-08.fate", |cx| Box::pin(shares_the_fate_of_its_machine(cx)))
        .needs(INSTANCES)
        .takes(30),
    Check::of("NODE-LIFE-14", |cx| Box::pin(keeps_nodes_without_provider_id(cx))).needs(INSTANCES).takes(25),
    Check::of("NODE-LIFE-17", |cx| Box::pin(keeps_nodes_of_others(cx))).needs(INSTANCES).takes(25),
];

/// Waits until the lifecycle loop deletes a Node whose machine is gone. After that, the loop has had the
/// chance to look at the other Nodes.
async fn loop_is_at_work(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "witness", Ready::False).await?;
    sees_deletion(cx, &machine, &node).await
}

async fn leaves_running_machines(cx: &CheckCx) -> Verdict {
    let (_, sick) = known(cx, "sick", Ready::False).await?;
    let (_, silent) = known(cx, "silent", Ready::Unknown).await?;
    loop_is_at_work(cx).await?;
    let nodes = (&sick, &silent);
    nodes
        .keeps(both(unmarked(), unmarked()))
        .within(cx.limits().quiet_life())
        .when("as its machine runs")
        .await
}

async fn leaves_ready_nodes(cx: &CheckCx) -> Verdict {
    let (stopped, node) = known(cx, "stopped", Ready::True).await?;
    stopped.stop().await?;
    loop_is_at_work(cx).await?;
    let quiet = node.keeps(unmarked()).within(cx.limits().quiet_life());
    quiet.when("though the cloud says that its machine is shut down").await
}

/// The check has two Nodes. The machine of the first is stopped, and every look-up of it fails. The machine
/// of the second runs, and every other look-up of it fails: a CCM that asks whether it exists gets an answer,
/// and its next question, whether it is shut down, gets none.
async fn marks_nothing_on_errors(cx: &CheckCx) -> Verdict {
    let (stopped, running) = (cx.machine(machine("never")).await?, cx.machine(machine("half")).await?);
    stopped.stop().await?;
    let failure = Effect::Status { status: 503, retry_after_s: None };
    let fault = stopped.cloud().meets("failing look-ups", &[failure]).to(&[Op::InstanceGet]).await?;
    running
        .cloud()
        .meets("every other look-up fails", &every_other_fails(503))
        .to(&[Op::InstanceGet])
        .await?;
    let not_ready = |machine: &Machine<'_>| {
        let plan = machine.node().provider_id(&machine.provider_id()).ready(Ready::False);
        plan.taints(vec![taint("example.com/kept", "1", "NoSchedule")])
    };
    let (node, half) = (cx.node(not_ready(&stopped)).await?, cx.node(not_ready(&running)).await?);
    let limit = cx.limits().life() + cx.limits().watch();
    fault.becomes(met_by(1)).within(limit).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let nodes = (&node, &half);
    let kept = nodes.keeps(both(unmarked(), unmarked())).within(cx.limits().quiet_life());
    kept.when("while it cannot be learnt whether its machine is shut down").await?;
    // The loop is working, and it marks the Node as soon as it gets an answer.
    fault.clear().await?;
    node.becomes(marked()).within(cx.limits().life_of_machine()).when("once the cloud says so").await
}

/// Waits until every client has given up its first look-up and has acted on the result.
async fn keeps_nodes_in_silence(cx: &CheckCx) -> Verdict {
    let machine = cx.machine(machine("a")).await?;
    let fault = machine.cloud().meets("look-ups without an answer", &no_answer()).to(&[Op::InstanceGet]);
    let fault = fault.await?;
    let node = register(cx, &machine, Ready::False).await?;
    let limit = cx.limits().life() + cx.limits().watch();
    fault.becomes(met_by(1)).within(limit).await.map_err(|stop| unless_it_lists(cx, stop))?;
    let quiet = node.keeps(present()).within(PATIENCE + cx.limits().life());
    quiet.when("while no look-up of its machine is answered").await?;
    fault.clear().await?;
    // The lifecycle loop is what has waited, and it is working. The current look-up may wait as long again.
    machine.delete().await?;
    let goes = node.becomes(gone()).within(PATIENCE + cx.limits().life_of_machine());
    goes.when("after its machine, once look-ups are answered").await
}

/// The names of these Nodes begin alike, none of the Nodes is Ready, and one machine is gone.
async fn deletes_no_namesake(cx: &CheckCx) -> Verdict {
    let (_, short) = known(cx, "n", Ready::False).await?;
    let (machine, node) = known(cx, "n-1", Ready::False).await?;
    let (_, long) = known(cx, "n-10", Ready::False).await?;
    sees_deletion(cx, &machine, &node).await?;
    let others = (&short, &long);
    others
        .keeps(both(present(), present()))
        .within(cx.limits().life())
        .when("as its machine is there")
        .await?;
    node.is(gone()).await
}

/// The machine of one Node runs under another name, and no machine has the Node's name. The machine of the
/// other Node is gone, and another machine has the Node's name.
async fn shares_the_fate_of_its_machine(cx: &CheckCx) -> Verdict {
    let (kept, dead) = (cx.name("kept"), cx.name("dead"));
    let running = cx.machine(machine("other")).await?;
    let lost = cx.machine(machine("lost")).await?;
    cx.machine(machine("decoy").named(&dead)).await?;
    let not_ready = |machine: &Machine<'_>, name: &str| {
        let plan = machine.node().named(name).provider_id(&machine.provider_id()).ready(Ready::False);
        plan.taints(vec![taint("example.com/kept", "1", "NoSchedule")])
    };
    let stays = cx.node(not_ready(&running, &kept)).await?;
    let goes = cx.node(not_ready(&lost, &dead)).await?;
    sees_deletion(cx, &lost, &goes).await?;
    let quiet = stays.keeps(unmarked()).within(cx.limits().quiet_life());
    quiet.when("as the machine of its providerID runs, whatever that is called").await
}

async fn keeps_nodes_without_provider_id(cx: &CheckCx) -> Verdict {
    let mut nodes = Vec::new();
    for suffix in ["running", "stopped"] {
        let machine = cx.machine(machine(suffix)).await?;
        if suffix == "stopped" {
            machine.stop().await?;
        }
        let kept = taint("example.com/kept", "1", "NoSchedule");
        nodes.push(cx.node(machine.node().ready(Ready::False).taints(vec![kept])).await?);
    }
    loop_is_at_work(cx).await?;
    let [running, stopped] = &nodes[..] else { unreachable!("two were made") };
    let both_of_them = (running, stopped);
    let quiet = both_of_them.keeps(both(unmarked(), present())).within(cx.limits().quiet_life());
    quiet.when("as the cloud knows its machine by its name").await?;
    // A provider that cannot look up a machine by name answers with an error, which is treated as no answer.
    cx.record("shutdown_known_by_name", stopped.is(marked()).await.is_ok());
    Ok(())
}

async fn keeps_nodes_of_others(cx: &CheckCx) -> Verdict {
    let elsewhere = cx.absent_machine(machine("elsewhere"));
    let kept = taint("example.com/kept", "1", "NoSchedule");
    let plan = elsewhere.node().provider_id(&format!("other://{}", elsewhere.name()));
    let node = cx.node(plan.ready(Ready::False).taints(vec![kept])).await?;
    loop_is_at_work(cx).await?;
    let quiet = node.keeps(present()).within(cx.limits().quiet_life());
    quiet.when("as its providerID is another provider's").await
}
