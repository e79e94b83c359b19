//! Rollouts that stand still part of the way, or whose release cannot start (contract UPG-12).

use super::rollout::{LB, WATCHED, has_taken_over, served};
use super::works::works;
use crate::failover::{edits, in_order};
use harness_testkit::prelude::*;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-12.held", |cx| Box::pin(works_while_both_run(cx)))
        .needs(LB)
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(60),
    Check::of("UPG-12.broken", |cx| Box::pin(outlives_a_broken_release(cx)))
        .by_calls()
        .on_a_fresh_cluster()
        .upgrades()
        .takes(30),
];

/// For how long a held rollout stays as it is.
const PAUSE: Duration = Duration::from_secs(10);

/// Load balancers from before stay through all of it.
async fn have_stayed(before: &[(Service<'_>, LoadBalancer)], rollout: &Rollout<'_>) -> Verdict {
    for (web, lb) in before {
        let same = no_other_than(lb, "is the same after the rollout", |_| true);
        web.balancer().keeps(same).within(WATCHED).when("after the rollout").await?;
        web.calls().of(&[Op::LbCreate, Op::LbDelete]).since(rollout.mark).is(no_calls()).await?;
        web.is(publishes(lb)).await?;
    }
    Ok(())
}

async fn works_while_both_run(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let before = served(cx).await?;
    let busy = cx.service(load_balancer("busy").port(80)).await?.provisioned().await?;
    let rollout = cx.roll_out_and_hold().await?;
    rollout.becomes(begun()).within(cx.limits().start()).await?;
    if rollout.left().await? == 0 {
        return Err(CheckError::NotObservable(
            "the rollout that its manifests define stops every Pod of the release before first".to_owned(),
        ));
    }
    works(cx, "both", "while both releases run").await?;
    // Writes go on, so that a release that writes without leading is seen.
    tokio::select! {
        stop = edits(&busy) => return Err(stop),
        () = pause(PAUSE) => {}
    }
    if cx.declares(Capability::LeaderElection) {
        in_order(cx, rollout.mark, &cx.caller_of(Release::Old)).await?;
    }
    rollout.lose(Release::Old).await?;
    works(cx, "without-old", "after the Pods of the release before were lost").await?;
    rollout.lose(Release::New).await?;
    works(cx, "without-new", "after the Pods of the release under test were lost").await?;
    rollout.goes_on().await?;
    has_taken_over(cx, &rollout).await?;
    have_stayed(&before, &rollout).await
}

async fn outlives_a_broken_release(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let before = if cx.declares(Capability::LoadBalancer) { served(cx).await? } else { Vec::new() };
    let broken = cx.roll_out_what_cannot_start().await?;
    broken.becomes(failing()).within(cx.limits().start()).await?;
    if broken.left().await? == 0 {
        if broken.had() == 1 {
            return Err(CheckError::NotObservable(
                "its manifests replace the only Pod that the cluster has a place for".to_owned(),
            ));
        }
        return Err(CheckError::violation(
            "a release that cannot start leaves a Pod of the release before",
            "at least one",
            format!("none of {}", broken.had()),
        ));
    }
    works(cx, "meanwhile", "by the release before, while the one that replaces it cannot start").await?;
    let rollout = broken.repaired().await?;
    has_taken_over(cx, &rollout).await?;
    works(cx, "after", "by the release that could not start, once it was repaired").await?;
    have_stayed(&before, &rollout).await
}
