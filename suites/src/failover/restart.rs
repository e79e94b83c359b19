//! Load balancers over a restart of the leader (SVC-CREATE-19).

use super::needs::{KILL, LB_ELECTION};
use harness::check::Verdict;
use harness::cloud::Op;
use harness::cx::matchers::{no_other_than, publishes};
use harness::cx::{Check, CheckCx, Crash, Subject, load_balancer, no_calls, some_calls, taken_over};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::must(
    "SVC-CREATE-19",
    "a restart leaves load balancers, their addresses and the Services' status as they are",
    "k8s.io/cloud-provider service/controller.go: every Service is ensured at start",
    |cx| Box::pin(survives_a_restart(cx)),
)
.needs(LB_ELECTION)
.with(KILL)
.at_the_crash()
.takes(10)];

async fn survives_a_restart(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?;
    let before = web.gets_published().await?;
    let Crash { transitions, mark, .. } = cx.leader_crash().await?;
    cx.lease().becomes(taken_over(transitions)).within(cx.limits().failover()).await?;
    // The new leader ensures every Service once at its start: wait until it has looked at this one.
    web.looks().since(mark).becomes(some_calls()).when("by the new leader").await?;
    let same = no_other_than(&before, "is the same with the same address", |_| true);
    web.balancer().keeps(same).within(Duration::from_secs(3)).await?;
    let replaced = web.calls().of(&[Op::LbCreate, Op::LbDelete]).since(mark);
    replaced.is(no_calls()).await?;
    web.is(publishes(&before)).await
}
