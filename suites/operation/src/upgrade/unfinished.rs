//! Work that the release before could not finish is finished by the new one (contract UPG-07).

use super::rollout::{LB, upgraded};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("UPG-07.create", |cx| Box::pin(makes_what_was_not_made(cx)))
        .needs(LB)
        .without_machines()
        .with(&[Facility::Faults])
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-07.edit", |cx| Box::pin(follows_what_was_not_followed(cx)))
        .needs(LB)
        .without_machines()
        .with(&[Facility::Faults])
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
    Check::of("UPG-07.delete", |cx| Box::pin(removes_what_was_not_removed(cx)))
        .needs(LB)
        .without_machines()
        .with(&[Facility::Faults])
        .on_a_fresh_cluster()
        .upgrades()
        .takes(12),
];

/// The calls that change a load balancer or its resources.
const WRITES: &[Op] =
    &[Op::LbCreate, Op::LbUpdate, Op::LbDelete, Op::AuxCreate, Op::AuxUpdate, Op::AuxDelete];

/// How long the new release may take: it may have met refusals too, and waits after each.
fn time_to_finish(cx: &CheckCx) -> Duration {
    cx.limits().service_after(3) + cx.limits().load_balancer_work()
}

async fn makes_what_was_not_made(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let refusals = web.cloud().answers(503).to(WRITES).await?;
    web.wants_a_balancer().await?;
    refusals.hits_unless(1, web.is_served()).await?;
    upgraded_while(cx, refusals).await?;
    let limit = time_to_finish(cx);
    let lb = web.balancer().becomes(one_active()).within(limit).when("by the new release").await?;
    web.becomes(publishes(&lb)).within(limit).when("by the new release").await
}

async fn follows_what_was_not_followed(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let refusals = web.cloud().answers(503).to(WRITES).await?;
    web.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await?;
    let follows = || {
        no_other_than(&before, "follows the edit", |held| {
            held.load_balancers.iter().all(|lb| matches!(lb.frontends.as_slice(), [one] if one.port == 8080))
        })
    };
    refusals.hits_unless(1, web.balancer().is(follows())).await?;
    upgraded_while(cx, refusals).await?;
    let limit = time_to_finish(cx);
    web.balancer().becomes(follows()).within(limit).when("by the new release").await
}

async fn removes_what_was_not_removed(cx: &CheckCx) -> Verdict {
    cx.old_release().await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    web.gets_published().await?;
    web.rests().await?;
    let refusals = web.cloud().answers(503).to(WRITES).await?;
    web.delete().await?;
    refusals.hits_unless(1, web.is_cleaned_up()).await?;
    upgraded_while(cx, refusals).await?;
    let limit = time_to_finish(cx);
    web.balancer().becomes(nothing_left()).within(limit).when("by the new release").await?;
    web.becomes(gone()).within(limit).when("by the new release").await
}

/// Replaces the release before while the cloud refuses calls; once the new one leads, the cloud answers again.
async fn upgraded_while(cx: &CheckCx, refusals: Fault<'_>) -> Verdict {
    upgraded(cx).await?;
    refusals.clear().await
}
