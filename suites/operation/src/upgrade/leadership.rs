//! Two releases elect one leader between them, and never work at the same time (contract UPG-05).

use super::rollout::{has_taken_over, upgraded};
use crate::failover::{edits, in_order, time_to_take_up};
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-05.lease", |cx| Box::pin(takes_the_lease_over(cx)))
        .needs(&[Capability::LeaderElection])
        .on_a_fresh_cluster()
        .upgrades()
        .takes(8),
    Check::of("UPG-05.writes", |cx| Box::pin(never_overlap(cx)))
        .needs(&[Capability::LeaderElection, Capability::LoadBalancer])
        .by_calls()
        .without_machines()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
];

async fn takes_the_lease_over(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let lease = cx.lease();
    let led = lease.becomes(held()).within(cx.limits().start()).when("by the release before").await?;
    let before = transitions_of(&led);
    upgraded(cx).await?;
    let taken = lease.becomes(taken_over(before)).within(cx.limits().failover());
    taken.when("by the release that replaces it").await.map(drop)
}

async fn never_overlap(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let web = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    let mark = cx.cloud().mark()?;
    let old = cx.caller_of(Release::Old);
    let [by_old, by_new] =
        [Release::Old, Release::New].map(|release| cx.calls_of(release).writes().since(mark));
    // Writes go on before, during and after the rollout.
    tokio::select! {
        stop = edits(&web) => return Err(stop),
        outcome = async {
            let wrote = by_old.becomes(some_calls()).within(time_to_take_up(cx));
            wrote.when("by the release before").await?;
            let rollout = cx.roll_out(Release::New).await?;
            let limit = cx.limits().start() + cx.limits().failover() + time_to_take_up(cx);
            by_new.becomes(some_calls()).within(limit).when("by the release that replaces it").await?;
            has_taken_over(cx, &rollout).await
        } => outcome?,
    }
    in_order(cx, mark, &old).await
}
