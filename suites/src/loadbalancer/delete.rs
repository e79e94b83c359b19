//! Deletion (contract SVC-DEL).

use super::{LB, provisioned};
use crate::judges::{MaybeService, keeps_finalizer, nothing_left};
use harness::check::{Facility, Stop, Verdict};
use harness::cloud::{Effect, Fault, Match, Op};
use harness::cx::{Check, CheckCx, ServiceRef, load_balancer};
use harness::k8s::is_being_deleted;
use harness::probe::{Observed, absent, holds};

const SYNC: &str = "k8s.io/cloud-provider service/controller.go syncLoadBalancerIfNeeded";

pub(super) const CHECKS: [Check; 4] = [
    Check::must(
        "SVC-DEL-01",
        "a Service stays until all of its load balancer is gone from the cloud",
        SYNC,
        |cx| Box::pin(waits_for_the_cloud(cx)),
    )
    .needs(LB)
    .with(&[Facility::Barriers]),
    Check::must("SVC-DEL-02", "a failed deletion keeps the finalizer and is tried again", SYNC, |cx| {
        Box::pin(retries_deletion(cx))
    })
    .needs(LB)
    .with(&[Facility::Faults])
    .takes(16),
    Check::must(
        "SVC-DEL-03",
        "a load balancer that is already absent does not hold the Service",
        SYNC,
        |cx| Box::pin(accepts_absence(cx)),
    )
    .needs(LB),
    Check::must(
        "SVC-DEL-09",
        "auxiliary objects go with the load balancer",
        "k8s.io/cloud-provider cloud.go EnsureLoadBalancerDeleted",
        |cx| Box::pin(leaves_nothing(cx)),
    )
    .needs(LB),
];

async fn service_goes(cx: &CheckCx, service: &ServiceRef, limit: std::time::Duration) -> Verdict {
    let read = async || cx.inventory_of(service).await;
    cx.eventually("everything of it is gone from the cloud", limit, read, nothing_left(service)).await?;
    let read = async || Ok(cx.find_service(service));
    cx.eventually("then the Service goes", cx.limits().watch(), read, absent("Service")).await
}

async fn waits_for_the_cloud(cx: &CheckCx) -> Verdict {
    let (service, lb) = provisioned(cx, load_balancer("web").port(80)).await?;
    let barrier = cx.raise_barrier(&[Op::LbDelete], &lb.id).await?;
    cx.delete_service(&service).await?;
    cx.eventually(
        "the CCM asks the cloud to delete the load balancer",
        cx.limits().watch(),
        async || barrier.waiting().await,
        holds("a deletion waiting at the barrier", |waiting: &u64| *waiting > 0),
    )
    .await?;
    let held = holds("the Service with deletionTimestamp and finalizer", |service: &MaybeService| {
        let kept = matches!(keeps_finalizer().judge(service), harness::probe::Seen::Yes(()));
        kept && service.as_ref().is_some_and(|s| is_being_deleted(s))
    });
    let read = async || Ok(cx.find_service(&service));
    cx.consistently(
        "the Service stays while the cloud has its load balancer",
        cx.limits().settle(),
        read,
        held,
    )
    .await?;
    barrier.release().await?;
    service_goes(cx, &service, cx.limits().watch()).await
}

async fn retries_deletion(cx: &CheckCx) -> Verdict {
    let (service, lb) = provisioned(cx, load_balancer("web").port(80)).await?;
    let matching = Match { ops: vec![Op::LbDelete], resource: Some(lb.id.clone()), ..Match::default() };
    let effect = Effect::Status { status: 503, retry_after_s: None };
    let fault = cx.inject(Fault { matching, effect, calls: Some(2), for_ms: None }).await?;
    cx.delete_service(&service).await?;
    cx.eventually(
        "the first deletion fails",
        cx.limits().watch(),
        async || cx.hits(&fault).await,
        holds("one failed deletion", |hits: &u64| *hits >= 1),
    )
    .await?;
    let read = async || Ok(cx.find_service(&service));
    cx.consistently(
        "the finalizer stays after a failed deletion",
        cx.limits().settle(),
        read,
        keeps_finalizer(),
    )
    .await?;
    service_goes(cx, &service, cx.limits().service_after(2)).await?;
    let hits = cx.hits(&fault).await?;
    if hits < 2 {
        return Err(Stop::unmet("the deletion was tried again", "two failed deletions", hits.observed()));
    }
    Ok(())
}

async fn accepts_absence(cx: &CheckCx) -> Verdict {
    let (service, lb) = provisioned(cx, load_balancer("web").port(80)).await?;
    cx.remove_load_balancer(&lb).await?;
    cx.delete_service(&service).await?;
    let read = async || Ok(cx.find_service(&service));
    cx.eventually(
        "the Service goes though its load balancer is absent",
        cx.limits().watch(),
        read,
        absent("Service"),
    )
    .await
}

async fn leaves_nothing(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80).port(443);
    let restricted = plan.with(|s| s.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".to_owned()]));
    let (service, _) = provisioned(cx, restricted).await?;
    cx.delete_service(&service).await?;
    service_goes(cx, &service, cx.limits().watch()).await
}
