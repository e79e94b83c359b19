//! Load balancers when the leader dies: what it was creating is found again, and what was there stays as it was.

use super::{LB, provisioned};
use crate::judges::{one_active, publishes};
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::{ActiveFault, Effect, Entry, Fault, LoadBalancer, Match, Op};
use harness::cx::{Check, CheckCx, ServiceRef, load_balancer};
use harness::probe::{Observed, Seen, at_least, holds};
use harness::session::{Crash, show_entry};
use kube::ResourceExt;
use serde_json::json;
use std::time::Duration;

const CRASH: &[Capability] = &[Capability::LoadBalancer, Capability::LeaderElection];
const KILL: &[Facility] = &[Facility::ProcessControl];

pub(super) const ONLY_ONE: Check = Check::must(
    "SVC-CREATE-04",
    "at most one load balancer exists per Service, also when an answer is lost or the leader dies in between",
    "k8s.io/cloud-provider cloud.go EnsureLoadBalancer: must be idempotent",
    |cx| Box::pin(creates_only_one(cx)),
)
.needs(LB)
.with(&[Facility::Faults])
.at_the_crash()
.takes(15);

/// Lives with the failover checks, since it restarts the leader; its body is here with its kin.
pub(crate) const RESTART: Check = Check::must(
    "SVC-CREATE-19",
    "a restart leaves load balancers, their addresses and the Services' status as they are",
    "k8s.io/cloud-provider service/controller.go: every Service is ensured at start",
    |cx| Box::pin(survives_a_restart(cx)),
)
.needs(CRASH)
.with(KILL)
.at_the_crash()
.takes(10);

/// A Service that does not want a load balancer yet: a fault bound to its uid can be put in force first.
async fn not_yet(cx: &CheckCx, name: &str) -> Result<ServiceRef, Stop> {
    cx.create_service(load_balancer(name).port(80).with(|s| s.type_ = Some("ClusterIP".to_owned()))).await
}

async fn fault_on_creation(
    cx: &CheckCx,
    service: &ServiceRef,
    effect: Effect,
    calls: Option<u64>,
) -> Result<ActiveFault, Stop> {
    let matching =
        Match { ops: vec![Op::LbCreate], resource: Some(service.owner.clone()), ..Match::default() };
    cx.inject(Fault { matching, effect, calls, for_ms: None }).await
}

async fn creates_only_one(cx: &CheckCx) -> Verdict {
    // The creation takes effect, but its answer never arrives: a CCM that creates blindly makes a second one.
    let lost = not_yet(cx, "lost").await?;
    let fault = fault_on_creation(cx, &lost, Effect::LoseAnswer, Some(1)).await?;
    cx.patch_service(&lost, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the CCM creates a load balancer and the answer is lost",
        cx.limits().watch(),
        async || cx.hits(&fault).await,
        holds("one lost answer", |hits: &u64| *hits == 1),
    )
    .await?;
    stays_the_only_one(cx, &lost, cx.limits().service_after(1)).await?;
    let elects = cx.session().plan().profile.capabilities.leader_election;
    if !elects || !cx.session().facilities().contains(&Facility::ProcessControl) {
        cx.record(
            "without",
            "a leader that dies in between: no leader election, or no way to kill a process",
        );
        return Ok(());
    }
    // The load balancer is still being provisioned when the leader that asked for it dies.
    let orphan = not_yet(cx, "orphan").await?;
    cx.crash_is_near().await?;
    let provisioning = Duration::from_secs(4);
    fault_on_creation(cx, &orphan, Effect::SlowProvisioning { ms: 4_000 }, None).await?;
    cx.patch_service(&orphan, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    let read = async || cx.load_balancers(&orphan).await;
    cx.eventually(
        "the cloud has a load balancer that is being provisioned",
        cx.limits().watch(),
        read,
        at_least(1, "load balancer"),
    )
    .await?;
    cx.leader_crash().await?;
    let limit = cx.limits().failover() + provisioning + cx.limits().service_after(1);
    stays_the_only_one(cx, &orphan, limit).await
}

async fn stays_the_only_one(cx: &CheckCx, service: &ServiceRef, limit: Duration) -> Verdict {
    let read = async || cx.load_balancers(service).await;
    let lb = cx.eventually("exactly one load balancer, found again", limit, read, one_active()).await?;
    let read = async || Ok(cx.find_service(service));
    cx.eventually("its address is published", limit, read, publishes(&lb)).await?;
    let read = async || cx.load_balancers(service).await;
    let one = holds("exactly one load balancer", |list: &Vec<LoadBalancer>| list.len() == 1);
    cx.consistently("no second one appears", Duration::from_secs(3), read, one).await
}

async fn survives_a_restart(cx: &CheckCx) -> Verdict {
    let (service, before) = provisioned(cx, load_balancer("web").port(80)).await?;
    let Crash { transitions, mark, .. } = cx.leader_crash().await?;
    cx.eventually(
        "another leader has taken over",
        cx.limits().failover(),
        cx_lease_transitions(cx),
        holds(format!("more than {transitions} leaseTransitions"), move |now: &u64| {
            *now > transitions as u64
        }),
    )
    .await?;
    // The new leader ensures every Service once at its start: wait until it has looked at this one.
    let seen = |cx: &CheckCx| {
        Ok(cx.session().journal().since(mark, |e| e.owner.as_deref() == Some(&service.owner))?.len())
    };
    cx.eventually(
        "the new leader looks at the Service",
        cx.limits().watch(),
        async || seen(cx),
        holds("at least one request about it", |count: &usize| *count > 0),
    )
    .await?;
    let same = {
        let before = before.clone();
        holds(
            "the same load balancer with the same address",
            move |list: &Vec<LoadBalancer>| matches!(list.as_slice(), [lb] if lb.id == before.id && lb.addresses == before.addresses),
        )
    };
    let read = async || cx.load_balancers(&service).await;
    cx.consistently("the load balancer stays as it was", Duration::from_secs(3), read, same).await?;
    let of_it =
        |e: &Entry| e.owner.as_deref() == Some(&service.owner) && matches!(e.op, Op::LbCreate | Op::LbDelete);
    let writes = cx.session().journal().since_now(mark, of_it).await?;
    if !writes.is_empty() {
        let seen = writes.iter().map(show_entry).collect::<Vec<_>>().join("; ");
        return Err(Stop::unmet("nothing is created or deleted for it", "no create and no delete", seen));
    }
    let Some(stored) = cx.find_service(&service) else {
        return Err(Stop::unmet("the Service is still there", "the Service", "nothing"));
    };
    match publishes(&before).judge(&Some(stored.clone())) {
        Seen::Yes(()) => Ok(()),
        _ => Err(Stop::unmet(
            "its status is unchanged",
            "the same ingress",
            format!("{} ({})", stored.observed(), stored.name_any()),
        )),
    }
}

fn cx_lease_transitions(cx: &CheckCx) -> impl AsyncFnMut() -> Result<u64, harness::probe::ReadError> {
    async move || Ok(cx.lease_transitions().max(0) as u64)
}
