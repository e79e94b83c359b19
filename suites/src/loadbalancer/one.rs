//! At most one load balancer a Service (contract SVC-CREATE-04): when an answer is lost, and when the leader dies.

use super::needs::LB;
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::{Inventory, LbState, LoadBalancer, Op};
use harness::cx::matchers::{at_least_one, no_other_than, one_active, one_balancer, publishes};
use harness::cx::{Check, CheckCx, Service, Subject, load_balancer, met_by, some_calls};
use harness::probe::{Matcher, Observed, Reach, Seen, gone, holds};
use k8s_openapi::api::core::v1 as core;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const IDEMPOTENT: &str = "k8s.io/cloud-provider cloud.go EnsureLoadBalancer: must be idempotent";

/// The calls by which a load balancer may get another port.
const EDITS: &[Op] = &[Op::LbUpdate, Op::LbCreate, Op::LbDelete];

pub(super) const CHECKS: &[Check] = &[
    Check::must(
        "SVC-CREATE-04.lost-answer",
        "at most one load balancer exists per Service when the answer to its creation is lost",
        IDEMPOTENT,
        |cx| Box::pin(creates_only_one_when_an_answer_is_lost(cx)),
    )
    .without_machines()
    .needs(LB)
    .with(&[Facility::Faults])
    .takes(5),
    Check::must(
        "SVC-CREATE-04.leader-dies",
        "at most one load balancer exists per Service when the leader dies while it is being provisioned",
        IDEMPOTENT,
        |cx| Box::pin(creates_only_one_when_the_leader_dies(cx)),
    )
    .without_machines()
    .needs(&[Capability::LoadBalancer, Capability::LeaderElection])
    .with(&[Facility::Faults, Facility::Settings, Facility::ProcessControl])
    .at_the_crash()
    .takes(15),
    Check::must(
        "SVC-CREATE-14",
        "Services of one name share no load balancer and inherit none",
        "k8s.io/cloud-provider cloud.go DefaultLoadBalancerName",
        |cx| Box::pin(shares_no_balancer(cx)),
    )
    .without_machines()
    .needs(LB),
    Check::must(
        "SVC-CREATE-14.stripped",
        "a Service gets a load balancer though one of its name lost its finalizer and went before",
        "k8s.io/cloud-provider service/controller.go processServiceCreateOrUpdate",
        |cx| Box::pin(follows_a_stripped_namesake(cx)),
    )
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
    lost.becomes(met_by(1)).await?;
    stays_the_only_one(&web, cx.limits().service_after(1)).await
}

async fn creates_only_one_when_the_leader_dies(cx: &CheckCx) -> Verdict {
    // The load balancer is still being provisioned when the leader that asked for it dies.
    let provisioning = Duration::from_secs(10);
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    cx.crash_waits_for_this().await?;
    web.cloud().provisions_for(provisioning).to(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    web.balancer().becomes(at_least_one()).await?;
    let crash = cx.leader_crash().await?;
    let held = web.balancer().read(Reach::Origin).await?;
    if held.load_balancers.iter().any(|lb| lb.state == LbState::Active) {
        return Err(Stop::Error("the load balancer was ready before the leader had died".to_owned()));
    }
    let by_others = web.calls().since(crash.mark);
    let by_others = by_others.that(move |call| call.credential.as_deref() != Some(&crash.replica));
    // It may have one worker, and other Services to look at first.
    let limit = cx.limits().failover() + cx.limits().service_after(1);
    by_others.becomes(some_calls()).within(limit).when("by the new leader").await?;
    // As long as it takes, the new leader looks again after a back-off or a time of the provider's own (contract SVC-ERR-02).
    stays_the_only_one(&web, provisioning + cx.limits().service_after(3)).await
}

async fn shares_no_balancer(cx: &CheckCx) -> Verdict {
    let here = cx.service(load_balancer("web").port(80)).await?;
    let first = here.gets_published().await?;
    let there = cx.service(load_balancer("web").port(80).elsewhere()).await?;
    let second = there.gets_published().await?;
    let same = no_other_than(&first, "is there beside its namesake's", |_| true);
    here.balancer().keeps(same).await?;
    here.is(publishes(&first)).await?;
    // A Service of the same name that comes later inherits nothing.
    there.delete().await?;
    there.becomes(gone()).within(cx.limits().load_balancer()).await?;
    let same = no_other_than(&first, "is there though its namesake's is gone", |_| true);
    here.balancer().keeps(same).await?;
    let again = cx.service(load_balancer("web").port(80).elsewhere()).await?;
    let third = again.gets_published().await?;
    if third.id == second.id || third.id == first.id {
        let (wanted, seen) = ("a load balancer of its own".to_owned(), third.observed());
        return Err(again.breaks("a Service inherits no load balancer", &wanted, &seen));
    }
    Ok(())
}

/// It publishes a load balancer of its own: what is written to a name may be meant for who had it before.
fn is_served() -> Matcher<(Inventory, Option<Arc<core::Service>>)> {
    holds(
        "publishes a load balancer of its own",
        |(held, service): &(Inventory, Option<Arc<core::Service>>)| {
            let publishes = |lb: &LoadBalancer| matches!(publishes(lb).matches(service), Seen::Yes(()));
            held.load_balancers.iter().any(|lb| lb.state == LbState::Active && publishes(lb))
        },
    )
    .expecting("an active load balancer, and its address in the Service")
}

async fn follows_a_stripped_namesake(cx: &CheckCx) -> Verdict {
    let stripped = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    stripped.rests().await?;
    // Whoever works on it hears of nothing else that has its name, and next of the Service that has it then.
    let edit = stripped.cloud().holds(EDITS).await?;
    stripped.patch(&json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP"}]}})).await?;
    edit.is_reached().await?;
    stripped.vanishes().await?;
    stripped.becomes(gone()).await?;
    let web = cx.service(load_balancer("web").port(80)).await?;
    edit.release().await?;
    // The old one may have to go first.
    let limit = cx.limits().service_after(2) + 2 * cx.limits().load_balancer_work();
    let own = web.balancer();
    let served =
        (&own, &web).becomes(is_served()).within(limit).when("though one of its name vanished").await;
    // What that has left is nobody's to clean up (contract SVC-DEL-11), and so this check's.
    let mine = own.read(Reach::Origin).await?.load_balancers;
    let left = stripped.balancer();
    if left.read(Reach::Origin).await?.load_balancers.iter().all(|lb| mine.iter().all(|my| my.id != lb.id)) {
        left.vanishes().await?;
    }
    served
}

async fn stays_the_only_one(web: &Service<'_>, limit: Duration) -> Verdict {
    let limit = limit + web.cx().limits().load_balancer_work();
    let lb = web.balancer().becomes(one_active()).within(limit).when("found again").await?;
    web.becomes(publishes(&lb)).within(limit).await?;
    let only = one_balancer("is the only one", |_| true).expecting("exactly one load balancer");
    web.balancer().keeps(only).within(Duration::from_secs(3)).await
}
