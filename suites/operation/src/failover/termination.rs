//! The leader gets SIGTERM (HA-04): whether it releases the Lease or lets it expire, it writes nothing after
//! another replica has begun.

use super::busy::{another_writes, edits, in_order};
use super::needs::ELECTION_AND_LB;
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[Check::of("HA-04.terminated", |cx| Box::pin(never_overlaps(cx)))
    .by_calls()
    .needs(ELECTION_AND_LB)
    .with(&[Facility::CcmControl])
    .alone()
    .takes(15)];

async fn never_overlaps(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    let leader = cx.active_replica().await?;
    let mark = cx.cloud().mark()?;
    // Writes continue before, during and after the change.
    tokio::select! {
        stop = edits(&web) => return Err(stop),
        outcome = change_of_leader(cx, &leader, mark) => outcome?,
    }
    in_order(cx, mark, leader.name()).await
}

/// The leader writes, gets SIGTERM, and another replica writes for a while.
async fn change_of_leader(cx: &CheckCx, leader: &Replica<'_>, mark: u64) -> Result<(), CheckError> {
    let lease = cx.lease();
    let led = lease.becomes(held()).await?;
    let before = transitions_of(&led);
    let writes = cx.cloud().calls().writes().since(mark);
    writes.becomes(some_calls()).when("by the leader").await?;
    leader.will_end();
    leader.hands_over(before).await?;
    another_writes(cx, leader.name(), mark).await?;
    pause(cx.limits().settle()).await;
    Ok(())
}
