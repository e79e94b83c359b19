//! A new leader processes Nodes and Services that were created or changed without a leader, and continues
//! work that the old one had begun (contract NODE-INIT-03, SVC-ELIG-06, SVC-DEL-05, SVC-UPD-07, HA-08).

use super::busy::time_to_take_up;
use super::in_flight::EDITS;
use super::needs::{ELECTION, KILL, LB_ELECTION};
use harness_testkit::prelude::*;
use serde_json::json;
use std::time::Duration;
use suites_common::joining::registered;
use suites_common::port_parts::{Edited, Ports};

pub(super) const CHECKS: &[Check] = &[
    Check::of("NODE-INIT-03", |cx| Box::pin(initialises_what_joined_meanwhile(cx)))
        .needs(ELECTION)
        .with(KILL)
        .at_the_crash()
        .takes(10),
    Check::of("SVC-ELIG-06", |cx| Box::pin(provisions_what_came_meanwhile(cx)))
        .needs(LB_ELECTION)
        .with(KILL)
        .at_the_crash()
        .takes(10),
    Check::of("SVC-DEL-05", |cx| Box::pin(cleans_up_what_went_meanwhile(cx)))
        .needs(LB_ELECTION)
        .with(KILL)
        .at_the_crash()
        .takes(10),
    Check::of("SVC-UPD-07", |cx| Box::pin(follows_a_type_that_was_edited_meanwhile(cx)))
        .needs(LB_ELECTION)
        .with(KILL)
        .at_the_crash()
        .takes(10),
    Check::of("HA-08.create", |cx| Box::pin(finds_what_was_never_answered(cx)))
        .needs(LB_ELECTION)
        .with(&[Facility::ProcessControl, Facility::Faults])
        .at_the_crash()
        .takes(10),
    Check::of("HA-08.half-made", |cx| Box::pin(completes_what_was_half_made(cx)))
        .needs(LB_ELECTION)
        .with(&[Facility::ProcessControl, Facility::Barriers])
        .at_the_crash()
        .takes(10),
    Check::of("HA-08.update", |cx| Box::pin(follows_a_begun_edit(cx)))
        .needs(LB_ELECTION)
        .with(&[Facility::ProcessControl, Facility::Faults])
        .at_the_crash()
        .takes(10),
    Check::of("HA-08.delete", |cx| Box::pin(finishes_a_begun_deletion(cx)))
        .needs(LB_ELECTION)
        .with(&[Facility::ProcessControl, Facility::Faults])
        .at_the_crash()
        .takes(10),
];

/// Crashes the leader. The next steps of the check happen without a leader, which [`had_no_leader`] verifies.
pub(super) async fn crash_the_leader(cx: &CheckCx) -> Result<i32, CheckError> {
    Ok(cx.leader_crash().await?.transitions)
}

/// Checks that the Lease has not changed hands yet, so that everything since the crash happened without a leader.
async fn had_no_leader(cx: &CheckCx, before: i32) -> Verdict {
    match taken_over(before).matches(&cx.lease().read(ReadSource::Origin).await?) {
        Observation::Matched(_) => Err(CheckError::Error(
            "the next leader was there before this machine had done what it was to find; stop other programs and run again"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Waits until another replica leads.
pub(super) async fn has_a_leader(cx: &CheckCx, before: i32) -> Verdict {
    cx.lease().becomes(taken_over(before)).within(cx.limits().failover()).await.map(drop)
}

async fn initialises_what_joined_meanwhile(cx: &CheckCx) -> Verdict {
    let before = crash_the_leader(cx).await?;
    let (_, one) = registered(cx, machine("one")).await?;
    let (_, other) = registered(cx, machine("other")).await?;
    had_no_leader(cx, before).await?;
    has_a_leader(cx, before).await?;
    for node in [one, other] {
        let joins = node.becomes(initialised()).within(2 * cx.limits().watch());
        joins.when("by the new leader").await?;
    }
    Ok(())
}

async fn provisions_what_came_meanwhile(cx: &CheckCx) -> Verdict {
    // Its namespace takes a moment to create.
    cx.service(load_balancer("before").port(80).not_yet()).await?;
    let before = crash_the_leader(cx).await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    had_no_leader(cx, before).await?;
    has_a_leader(cx, before).await?;
    let lb =
        web.balancer().becomes(one_active()).within(time_to_take_up(cx)).when("by the new leader").await?;
    web.becomes(publishes(&lb)).within(time_to_take_up(cx)).when("by the new leader").await
}

async fn cleans_up_what_went_meanwhile(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let before = crash_the_leader(cx).await?;
    web.delete().await?;
    had_no_leader(cx, before).await?;
    has_a_leader(cx, before).await?;
    goes(cx, &web).await
}

async fn goes(cx: &CheckCx, web: &Service<'_>) -> Verdict {
    web.balancer().becomes(nothing_left()).within(time_to_take_up(cx)).when("by the new leader").await?;
    web.becomes(gone()).within(time_to_take_up(cx)).when("by the new leader").await
}

async fn follows_a_type_that_was_edited_meanwhile(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let before = crash_the_leader(cx).await?;
    web.patch(&json!({"spec": {"type": "ClusterIP"}})).await?;
    had_no_leader(cx, before).await?;
    has_a_leader(cx, before).await?;
    web.balancer().becomes(nothing_left()).within(time_to_take_up(cx)).when("by the new leader").await?;
    web.becomes(lacks_finalizer()).within(time_to_take_up(cx)).when("by the new leader").await
}

/// Any call for a load balancer.
const ANYTHING: &[Op] = &[
    Op::LbGet,
    Op::LbList,
    Op::LbCreate,
    Op::LbUpdate,
    Op::LbDelete,
    Op::AuxRead,
    Op::AuxCreate,
    Op::AuxUpdate,
    Op::AuxDelete,
];

/// For how long a living leader gets no answer about what it has created.
const UNANSWERED: Duration = Duration::from_secs(10);

/// The leader dies between the creation and its answer. Until then it learns nothing about what it has
/// created, even if it gives up the call.
async fn finds_what_was_never_answered(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    cx.crash_is_near().await?;
    web.cloud().withholds_the_answer(UNANSWERED).to(&[Op::LbCreate]).times(1).await?;
    web.wants_a_balancer().await?;
    web.balancer().becomes(at_least_one()).await?;
    let refusals = web.cloud().answers(503).to(ANYTHING).await?;
    let before = crash_the_leader(cx).await?;
    refusals.clear().await?;
    ends_as_one(cx, &web, before).await
}

/// The leader dies when the load balancer exists, and the creation of its resources is held. A provider may
/// need no such resources; then the load balancer only has to survive. A provider that creates the resources
/// first has created nothing yet.
async fn completes_what_was_half_made(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    cx.crash_is_near().await?;
    let held = web.cloud().holds(&[Op::AuxCreate]).await?;
    web.wants_a_balancer().await?;
    let balancer = web.balancer();
    tokio::select! {
        made = balancer.becomes(at_least_one()) => made.map(drop)?,
        reached = held.is_reached() => reached.map(drop)?,
    }
    let before = crash_the_leader(cx).await?;
    held.release().await?;
    ends_as_one(cx, &web, before).await
}

/// Checks that the new leader publishes one load balancer and that there is no other.
async fn ends_as_one(cx: &CheckCx, web: &Service<'_>, before: i32) -> Verdict {
    has_a_leader(cx, before).await?;
    let lb =
        web.balancer().becomes(one_active()).within(time_to_take_up(cx)).when("by the new leader").await?;
    let published = web.becomes(publishes(&lb)).within(time_to_take_up(cx)).when("by the new leader").await;
    if published.is_err() {
        // The Service publishes one of the two: the existence of two is a better message than which one it is.
        web.balancer().is(one_active()).await?;
    }
    published?;
    let only = one_balancer("is the only one", |_| true).expecting("exactly one load balancer");
    web.balancer().keeps(only).within(Duration::from_secs(3)).await
}

/// The resources of the load balancer may be gone, the load balancer is not, and its leader is dead.
async fn finishes_a_begun_deletion(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    cx.crash_is_near().await?;
    let refusals = web.cloud().fails().to(&[Op::LbDelete]).await?;
    web.delete().await?;
    refusals.hits_unless(1, web.is_cleaned_up()).await?;
    let before = crash_the_leader(cx).await?;
    refusals.clear().await?;
    has_a_leader(cx, before).await?;
    goes(cx, &web).await
}

/// The cloud refuses the change while the old leader lives.
async fn follows_a_begun_edit(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let (old, held) = (Ports::of(&web).await?, web.balancer().read(ReadSource::Origin).await?);
    cx.crash_is_near().await?;
    let refusals = web.cloud().fails().to(EDITS).await?;
    web.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await?;
    let new = Ports::of(&web).await?;
    let follows = || {
        one_balancer(
            "is one and follows the edit",
            |lb| matches!(lb.frontends.as_slice(), [only] if only.port == 8080),
        )
        .expecting("one load balancer with one frontend, on port 8080")
    };
    refusals.hits_unless(1, web.balancer().is(follows())).await?;
    let before = crash_the_leader(cx).await?;
    refusals.clear().await?;
    has_a_leader(cx, before).await?;
    web.balancer().becomes(follows()).within(time_to_take_up(cx)).when("by the new leader").await?;
    let edited = Edited::of(&held, old, new).is_followed("follows the edit");
    web.balancer().becomes(edited).when("by the new leader").await
}
