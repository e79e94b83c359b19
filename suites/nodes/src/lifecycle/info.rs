//! Optional behaviour of the lifecycle loop: recorded, never failed (contract NODE-LIFE-07, -15, -18).

use super::known_node::{INSTANCES, SHUTDOWN, known, marked, unmarked};
use harness_testkit::prelude::*;
use suites_common::observing::whether;

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-LIFE-07", |cx| Box::pin(notes_what_unmarks(cx))).needs(SHUTDOWN).takes(22),
    Check::of("NODE-LIFE-15", |cx| Box::pin(notes_what_protects(cx))).needs(INSTANCES),
    Check::of("NODE-LIFE-18", |cx| Box::pin(notes_mass_deletion(cx))).needs(INSTANCES).takes(5),
];

async fn notes_what_unmarks(cx: &CheckCx) -> Verdict {
    let (machine, node) = known(cx, "a", Ready::False).await?;
    machine.stop().await?;
    node.becomes(marked()).within(cx.limits().life_of_machine()).await?;
    machine.start().await?;
    let lost = node.becomes(unmarked()).within(cx.limits().quiet_life());
    cx.record("unmarked_while_not_ready", whether(lost.when("as its machine runs again").await)?);
    Ok(())
}

async fn notes_what_protects(cx: &CheckCx) -> Verdict {
    let unknown = cx.absent_machine(machine("unknown"));
    let node = cx.node(unknown.node().provider_id(&unknown.provider_id()).ready(Ready::False)).await?;
    let deleted = node.becomes(gone()).within(cx.limits().life_of_machine());
    cx.record("uninitialised_deleted", whether(deleted.when("though it is uninitialised").await)?);
    Ok(())
}

/// How many machines are deleted at once.
const MANY: usize = 5;

async fn notes_mass_deletion(cx: &CheckCx) -> Verdict {
    let mut nodes = Vec::new();
    for n in 0..MANY {
        let (machine, node) = known(cx, &format!("n-{n}"), Ready::False).await?;
        nodes.push((machine, node));
    }
    let (ready, safe) = known(cx, "ready", Ready::True).await?;
    for (machine, _) in &nodes {
        machine.delete().await?;
    }
    ready.delete().await?;
    let mut deleted = 0;
    for (_, node) in &nodes {
        let goes = node.becomes(gone()).within(cx.limits().life_of_machine());
        deleted += usize::from(whether(goes.when("as its machine is gone").await)?);
    }
    cx.record("deleted", format!("{deleted} of {MANY} that are not Ready"));
    cx.record("ready_deleted", !whether(safe.is(present()).await)?);
    Ok(())
}
