//! The API server is not reachable for a while (HA-16).

use super::needs::ELECTION;
use harness_testkit::prelude::*;
use suites_common::joining::registered;

const OUTAGE: &[Facility] = &[Facility::CcmControl, Facility::ApiControl];

pub(super) const CHECKS: &[Check] = &[
    Check::of("HA-16.short", |cx| Box::pin(outlives_a_short_one(cx)))
        .by_calls()
        .needs(ELECTION)
        .with(OUTAGE)
        .alone()
        .takes(7),
    Check::of("HA-16.long", |cx| Box::pin(recovers_from_a_long_one(cx)))
        .by_calls()
        .needs(ELECTION)
        .with(OUTAGE)
        .alone()
        .takes(20),
];

async fn outlives_a_short_one(cx: &CheckCx) -> Verdict {
    let leader = cx.active_replica().await?;
    let (deadline, retry) = (cx.limits().lease().renew_deadline, cx.limits().lease().retry_period);
    // On a slow machine the outage may last longer than intended, and a leader that ends because of that is right.
    cx.replicas().iter().for_each(Replica::is_at_risk);
    // Every leader tries to renew during it. It may have renewed one retry period before, and tries again one later.
    let lasts = (3 * retry / 2).min(deadline.saturating_sub(2 * retry)).max(deadline / 4);
    let lasted = cx.api_server_is_away_for(lasts).await?;
    if lasted + retry > deadline {
        let [lasted, lasts, deadline] = [lasted, lasts, deadline].map(|time| time.as_secs_f64());
        return Err(CheckError::Error(format!(
            "this machine took {lasted:.1} s for an outage of {lasts:.1} s, and leaders end after {deadline:.1} s; run with \
             nothing else on it"
        )));
    }
    for replica in cx.replicas() {
        replica
            .keeps(stays_up())
            .within(cx.limits().settle())
            .when("after a short outage of the API server")
            .await?;
    }
    let (_, node) = registered(cx, machine("after")).await?;
    node.becomes(initialised())
        .within(cx.limits().watch())
        .when("after a short outage of the API server")
        .await?;
    leader.is(stays_up()).await
}

async fn recovers_from_a_long_one(cx: &CheckCx) -> Verdict {
    let leader = cx.active_replica().await?;
    let replicas = cx.replicas();
    replicas.iter().for_each(Replica::will_end);
    let outage = cx.api_server_is_away().await?;
    leader.cannot_renew().is_in_time().await?;
    outage.restore().await?;
    let limit = cx.limits().failover() + cx.limits().start();
    cx.lease().becomes(held()).within(limit).when("after the outage").await?;
    let (_, node) = registered(cx, machine("after")).await?;
    node.becomes(initialised()).within(limit).when("after the outage").await?;
    leader.becomes(is_back()).within(cx.limits().start()).when("as a standby").await?;
    // The current leader has a standby.
    let led = cx.lease().becomes(held()).await?;
    cx.active_replica().await?.hands_over(transitions_of(&led)).await
}
