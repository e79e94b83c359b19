//! A leader that is running and does not know that it no longer leads: it is cut off from the API server, or
//! frozen for longer than its Lease lasts (HA-04, HA-09).

use super::busy::{another_writes, edits, in_order};
use super::needs::ELECTION_AND_LB;
use harness_testkit::prelude::*;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-04.partition", |cx| Box::pin(never_overlaps(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::CcmControl, Facility::ApiControl])
        .alone()
        .takes(20),
    Check::of("HA-09", |cx| Box::pin(writes_for_a_while(cx)))
        .by_calls()
        .needs(ELECTION_AND_LB)
        .with(&[Facility::CcmControl, Facility::ProcessControl])
        .alone()
        .takes(25),
];

async fn never_overlaps(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    let leader = cx.active_replica().await?;
    let mark = cx.cloud().mark()?;
    // Writes continue before, during and after the change.
    tokio::select! {
        stop = edits(&web) => return Err(stop),
        outcome = cut_off(cx, &leader, mark) => outcome?,
    }
    in_order(cx, mark, leader.name()).await?;
    stands_once(cx, &web).await
}

/// For how long a leader that has not ended is watched after it is back. Its watches resume after a pause
/// that has grown (k8s.io/client-go tools/cache reflector.go), and it learns of edits only through them.
const BACK: Duration = Duration::from_secs(15);

/// The leader writes, is cut off until another replica writes, and is reconnected for a while.
async fn cut_off(cx: &CheckCx, leader: &Replica<'_>, mark: u64) -> Verdict {
    let lease = cx.lease();
    let led = lease.becomes(held()).await?;
    let before = transitions_of(&led);
    let writes = cx.cloud().calls().writes().since(mark);
    writes.becomes(some_calls()).when("by the leader").await?;
    leader.will_end();
    let partition = leader.is_cut_off().await?;
    lease.becomes(taken_over(before)).within(cx.limits().failover()).await?;
    another_writes(cx, leader.name(), mark).await?;
    partition.restore().await?;
    let ended = matches!(ends().matches(&leader.read(ReadSource::Cache).await?), Observation::Matched(_));
    pause(if ended { cx.limits().settle() } else { BACK }).await;
    Ok(())
}

/// Checks that a Service has exactly one load balancer, and publishes it.
async fn stands_once(cx: &CheckCx, web: &Service<'_>) -> Verdict {
    let limit = cx.limits().service_after(1) + cx.limits().load_balancer_work();
    let lb = web.balancer().becomes(one_active()).within(limit).await?;
    web.becomes(publishes(&lb)).within(limit).await?;
    web.balancer()
        .keeps(no_other_than(&lb, "stays the only one", |_| true))
        .within(cx.limits().settle())
        .await
}

/// Freezes the leader, and returns when another replica has taken over.
async fn freeze<'a>(cx: &'a CheckCx, leader: &Replica<'a>, before: i32) -> Result<Frozen<'a>, CheckError> {
    leader.will_end();
    let frozen = leader.freezes().await?;
    cx.lease().becomes(taken_over(before)).within(cx.limits().failover()).await?;
    Ok(frozen)
}

async fn writes_for_a_while(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    let leader = cx.active_replica().await?;
    let mark = cx.cloud().mark()?;
    let woken = tokio::select! {
        stop = edits(&web) => return Err(stop),
        outcome = woken(cx, &leader, mark) => outcome?,
    };
    let writes = leader.calls().writes().since(woken).list().await?;
    // Another leader is working: the first call since then shows when the frozen one woke up.
    let first = cx.cloud().calls().since(woken).list().await?.into_iter().next();
    let at = |call: &Entry| Duration::from_millis(call.at_ms);
    let overlap = writes.last().zip(first.as_ref());
    let overlap = overlap.map_or(Duration::ZERO, |(last, first)| at(last).saturating_sub(at(first)));
    cx.record("writes-after-waking", writes.len());
    cx.record("overlap_ms", overlap.as_millis());
    Ok(())
}

/// The leader is frozen while it works, another replica takes over, and it wakes up. Returns the position in
/// the request log.
async fn woken(cx: &CheckCx, leader: &Replica<'_>, mark: u64) -> Result<u64, CheckError> {
    let led = cx.lease().becomes(held()).await?;
    let before = transitions_of(&led);
    let frozen = freeze(cx, leader, before).await?;
    another_writes(cx, leader.name(), mark).await?;
    let woken = cx.cloud().mark_now().await?;
    frozen.wake().await?;
    pause(cx.limits().step_down()).await;
    Ok(woken)
}
