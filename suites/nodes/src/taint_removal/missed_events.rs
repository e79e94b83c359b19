//! A Node that the CCM gets no watch event for, because its watch was interrupted and has expired (NODE-INIT-02).

use super::checked_node::{looked_at, no_controller_looked};
use harness_testkit::prelude::*;
use std::time::Duration;
use suites_common::joining::registered;

pub(super) const CHECKS: &[Check] =
    &[Check::of("NODE-INIT-02.expired-watch", |cx| Box::pin(initialises_missed_nodes(cx)))
        .needs(&[Capability::Instances])
        .with(&[Facility::CcmControl, Facility::WatchControl])
        .on_a_fresh_cluster()
        .takes(5)
        .takes_on_machines(16)];

/// How long the cluster itself may write to a Node that has just joined.
const SETTLES: Duration = Duration::from_secs(2);

async fn initialises_missed_nodes(cx: &CheckCx) -> Verdict {
    let alone = cx.ccm_without_election().await?;
    // The CCM's watch is open. It is the one that is interrupted.
    let (_, before) = registered(cx, machine("before")).await?;
    let worked =
        before.becomes(initialised()).within(cx.limits().start()).when("before any watch is interrupted");
    alone.while_it_runs(worked).await?;
    let interruption = cx.interrupt_watches().await?;
    let (_, missed) = registered(cx, machine("missed")).await?;
    // A later write would be reported by the next watch. The cluster's controllers may have been interrupted
    // as well.
    missed.becomes(looked_at()).within(cx.limits().start()).await.map_err(no_controller_looked)?;
    missed.keeps(present()).within(SETTLES).when("while it settles").await?;
    let pauses = interruption.expire().await?;
    let initialises = missed.becomes(initialised()).within(cx.limits().start() + pauses);
    initialises.when("although the watch that would have reported it has expired").await?;
    Ok(())
}
