//! At most one load balancer per Service (contract SVC-CREATE-04): when an answer is lost, and when the
//! leader dies.

use super::edits::{follows_8080, moves_to_8080, serves_8080};
use super::needs::LB;
use super::step_fails::FAILING;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The calls that may give a load balancer another port.
const EDITS: &[Op] = &[Op::LbUpdate, Op::LbCreate, Op::LbDelete];

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-CREATE-04.lost-answer", |cx| Box::pin(creates_only_one_when_an_answer_is_lost(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(5),
    Check::of("SVC-CREATE-04.leader-dies", |cx| Box::pin(creates_only_one_when_the_leader_dies(cx)))
        .without_machines()
        .needs(&[Capability::LoadBalancer, Capability::LeaderElection])
        .with(&[Facility::Faults, Facility::Settings, Facility::ProcessControl])
        .at_the_crash()
        .takes(15),
    Check::of("SVC-CREATE-04.look-up", |cx| Box::pin(makes_no_second_one_unseen(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        // Lists name no Service, so every client that lists gets no answer.
        .alone()
        .takes(7),
    Check::of("SVC-CREATE-04.edited", |cx| Box::pin(makes_no_second_one_for_an_edit(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers])
        .takes(6),
    Check::of("SVC-CREATE-04.pages", |cx| Box::pin(finds_them_on_any_page(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Settings])
        // The fault concerns every list.
        .alone()
        .takes(6),
    Check::of("SVC-CREATE-14", |cx| Box::pin(shares_no_balancer(cx))).without_machines().needs(LB),
    Check::of("SVC-CREATE-14.stripped", |cx| Box::pin(follows_a_stripped_namesake(cx)))
        .on_objects()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
];

async fn creates_only_one_when_an_answer_is_lost(cx: &CheckCx) -> Verdict {
    // The creation takes effect, but its answer never arrives: a CCM that creates blindly makes a second one.
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let lost = web.cloud().loses_the_answer().to(&[Op::LbCreate]).times(1).await?;
    web.wants_a_balancer().await?;
    lost.hits_unless(1, web.is_served()).await?;
    stays_the_only_one(&web, cx.limits().service_after(1)).await
}

async fn creates_only_one_when_the_leader_dies(cx: &CheckCx) -> Verdict {
    // The load balancer is still being provisioned when the leader that requested it dies.
    let provisioning = Duration::from_secs(10);
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    cx.crash_waits_for_this().await?;
    web.cloud().provisions_for(provisioning).to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    web.balancer().becomes(at_least_one()).await?;
    let crash = cx.leader_crash().await?;
    let held = web.balancer().read(ReadSource::Origin).await?;
    if held.load_balancers.iter().any(|lb| lb.state == LbState::Active) {
        return Err(CheckError::Error("the load balancer was ready before the leader had died".to_owned()));
    }
    let by_others = web.calls().since(crash.mark);
    let by_others = by_others.that(move |call| call.credential.as_deref() != Some(&crash.replica));
    // The new leader may have one worker, and other Services to process first.
    let limit = cx.limits().failover() + cx.limits().service_after(1);
    by_others.becomes(some_calls()).within(limit).when("by the new leader").await?;
    // Meanwhile, the new leader looks again after a back-off or a pause of the provider (contract SVC-ERR-02).
    stays_the_only_one(&web, provisioning + cx.limits().service_after(3)).await
}

fn follows_the_edit(before: &LoadBalancer) -> Matcher<Inventory> {
    no_other_than(
        before,
        "has the port of the edit alone",
        |held| matches!(held.load_balancers.as_slice(), [lb] if serves_8080(lb)),
    )
}

async fn makes_no_second_one_unseen(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let blind = cx.cloud().anything().fails().to(&[Op::LbGet, Op::LbList]).must_be_met().await?;
    moves_to_8080(&web).await?;
    let only = one_balancer("is the only one", |_| true).expecting("exactly one load balancer");
    web.balancer()
        .keeps(only)
        .within(FAILING)
        .when("while the inventory of the cloud cannot be read")
        .await?;
    cx.record("failed_look_ups", blind.read(ReadSource::Origin).await?);
    blind.clear().await?;
    let limit = cx.limits().service_after(3) + cx.limits().load_balancer_work();
    let balancer = web.balancer();
    let follows = balancer.becomes(follows_the_edit(&before)).within(limit);
    follows.when("once it can be looked up").await?;
    web.becomes(publishes(&before)).within(limit).when("as before the edit").await
}

/// How many Services are edited in this way at once. A CCM that relies on its own cache alone may get the
/// update in time for some of them.
const EDITED: usize = 4;

async fn makes_no_second_one_for_an_edit(cx: &CheckCx) -> Verdict {
    let names: Vec<String> = (0..EDITED).map(|number| format!("web-{number}")).collect();
    try_join_all(names.iter().map(|name| is_made_once(cx, name))).await.map(drop)
}

async fn is_made_once(cx: &CheckCx, name: &str) -> Verdict {
    let web = cx.service(load_balancer(name).port(80).not_yet()).await?;
    let creation = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    // One worker creates them one after the other.
    let workers = cx.limits().service_after(1) + cx.limits().load_balancer_work();
    creation.becomes(holds("holds a call", |waiting: &u64| *waiting > 0)).within(workers).await?;
    moves_to_8080(&web).await?;
    web.keeps(keeps_finalizer()).within(SEEN).when("while its load balancer is being made").await?;
    creation.release().await?;
    let follows =
        one_balancer("is one, and follows the edit", |lb| lb.state == LbState::Active && serves_8080(lb));
    let limit = cx.limits().service_after(2) + 2 * cx.limits().load_balancer_work();
    let follows = follows.expecting("one active load balancer with one frontend, on port 8080");
    web.balancer().becomes(follows).within(limit).await?;
    let lb = web.balancer().becomes(one_active()).await?;
    web.becomes(publishes(&lb)).within(limit).await?;
    web.rests().await?;
    let only = one_balancer("is the only one", |_| true).expecting("exactly one load balancer");
    web.balancer().keeps(only).when("once it is published").await
}

/// How long a CCM may take to get the event of an edit.
const SEEN: Duration = Duration::from_secs(1);

async fn finds_them_on_any_page(cx: &CheckCx) -> Verdict {
    let names = ["one", "two", "three"];
    let (mut all, mut before) = (Vec::new(), Vec::new());
    for name in names {
        // One after the other: in whichever order lists are, the second load balancer is not on the first page.
        let web = cx.service(load_balancer(name).port(80).port(443)).await?;
        before.push(web.gets_published().await?);
        all.push(web);
    }
    try_join_all(all.iter().map(Service::rests)).await?;
    cx.cloud().comes_in_pages_of(1).await?;
    let limit = cx.limits().service_after(1) + cx.limits().load_balancer_work();
    let when = "while lists come in pages of one";
    for (web, before) in all.iter().zip(&before) {
        moves_to_8080(web).await?;
        web.balancer().becomes(follows_the_edit(before)).within(limit).when(when).await?;
        web.keeps(publishes(before)).when(when).await?;
    }
    for (web, before) in all.iter().zip(&before) {
        web.balancer().is(follows_the_edit(before)).await?;
    }
    all.swap(0, 1);
    for web in &all {
        web.delete().await?;
        web.becomes(gone()).within(limit).when(when).await?;
        web.balancer().is(nothing_left()).await?;
    }
    Ok(())
}

async fn shares_no_balancer(cx: &CheckCx) -> Verdict {
    let here = cx.service(load_balancer("web").port(80)).await?;
    let first = here.gets_published().await?;
    let there = cx.service(load_balancer("web").port(80).elsewhere()).await?;
    let second = there.gets_published().await?;
    let same = no_other_than(&first, "exists next to that of the Service with the same name", |_| true);
    here.balancer().keeps(same).await?;
    here.is(publishes(&first)).await?;
    // A later Service with the same name inherits nothing.
    there.delete().await?;
    there.becomes(gone()).within(cx.limits().load_balancer()).await?;
    let same = no_other_than(&first, "is there though its namesake's is gone", |_| true);
    here.balancer().keeps(same).await?;
    let again = cx.service(load_balancer("web").port(80).elsewhere()).await?;
    let third = again.gets_published().await?;
    if third.id == second.id || third.id == first.id {
        let (wanted, seen) = ("its own load balancer".to_owned(), third.observed());
        return Err(again.breaks("a Service inherits no load balancer", &wanted, &seen));
    }
    Ok(())
}

/// Matches a Service that publishes a load balancer of its own. A write that names the Service may be meant
/// for the earlier one.
fn is_served() -> Matcher<(Inventory, Option<Arc<core::Service>>)> {
    holds("publishes its own load balancer", |(held, service): &(Inventory, Option<Arc<core::Service>>)| {
        let publishes =
            |lb: &LoadBalancer| matches!(publishes(lb).matches(service), Observation::Matched(()));
        held.load_balancers.iter().any(|lb| lb.state == LbState::Active && publishes(lb))
    })
    .expecting("an active load balancer, and its address in the Service")
}

async fn follows_a_stripped_namesake(cx: &CheckCx) -> Verdict {
    let stripped = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    stripped.rests().await?;
    // The worker that processes the Service gets no event about the old one any more; the next event is about
    // the new one.
    let edit = stripped.cloud().holds(EDITS).await?;
    stripped.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await?;
    edit.is_reached_unless(follows_8080(&stripped)).await?;
    stripped.vanishes().await?;
    stripped.becomes(gone()).await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    edit.release().await?;
    // The old load balancer may have to be removed first.
    let limit = cx.limits().service_after(2) + 2 * cx.limits().load_balancer_work();
    let own = web.balancer();
    let served =
        (&own, &web).becomes(is_served()).within(limit).when("though one of its name vanished").await;
    // The CCM does not have to clean up what that Service has left (contract SVC-DEL-11), so this check does.
    let mine = own.read(ReadSource::Origin).await?.load_balancers;
    let left = stripped.balancer();
    if left
        .read(ReadSource::Origin)
        .await?
        .load_balancers
        .iter()
        .all(|lb| mine.iter().all(|my| my.id != lb.id))
    {
        left.vanishes().await?;
    }
    served
}

async fn stays_the_only_one(web: &Service<'_>, limit: Duration) -> Verdict {
    let limit = limit + web.cx().limits().load_balancer_work();
    let lb = web.balancer().becomes(one_active()).within(limit).when("found again").await?;
    let published = web.becomes(publishes(&lb)).within(limit).await;
    if published.is_err() {
        // The Service publishes one of the two: the existence of two is a better message than which one it is.
        web.balancer().is(one_active()).await?;
    }
    published?;
    let only = one_balancer("is the only one", |_| true).expecting("exactly one load balancer");
    web.balancer().keeps(only).within(Duration::from_secs(3)).await
}
