//! Deletion (contract SVC-DEL).

use super::needs::LB;
use harness::check::{Capability, Facility, Verdict};
use harness::cloud::Op;
use harness::cx::matchers::{keeps_finalizer, nothing_left, waits_to_be_deleted};
use harness::cx::{Check, CheckCx, Service, Subject, as_before, load_balancer, met_by};
use harness::probe::gone;
use std::time::Duration;
use tokio::time::Instant;

const SYNC: &str = "k8s.io/cloud-provider service/controller.go syncLoadBalancerIfNeeded";

pub(super) const CHECKS: &[Check] = &[
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
    Check::must(
        "SVC-DEL-09.whole-run",
        "after the whole run the cloud holds what it held before, whatever was made for whom",
        "k8s.io/cloud-provider cloud.go EnsureLoadBalancerDeleted",
        |cx| Box::pin(leaves_the_cloud_as_it_was(cx)),
    )
    .needs(LB)
    .at_the_end(),
];

/// The cloud loses everything of a Service within the limit, and what the cloud takes itself; then the Service goes.
async fn goes(cx: &CheckCx, web: &Service<'_>, limit: Duration) -> Verdict {
    let limit = limit + cx.limits().load_balancer_work();
    web.balancer().becomes(nothing_left()).within(limit).await?;
    web.becomes(gone()).within(cx.limits().load_balancer()).when("once the cloud holds nothing for it").await
}

async fn waits_for_the_cloud(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let deletion = web.cloud().holds(&[Op::LbDelete]).await?;
    web.delete().await?;
    deletion.is_reached().await?;
    web.keeps(waits_to_be_deleted()).when("while the cloud has its load balancer").await?;
    deletion.release().await?;
    goes(cx, &web, cx.limits().watch()).await
}

async fn retries_deletion(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    // For as long as it takes to see a second try: how often a client repeats a call within one is its own choice.
    let refusals = web.cloud().answers(503).to(&[Op::LbDelete]).await?;
    let began = Instant::now();
    web.delete().await?;
    refusals.hits(1).await?;
    web.keeps(keeps_finalizer()).when("after a failed deletion").await?;
    refusals
        .clone()
        .becomes(met_by(2))
        .within(cx.limits().service_after(1))
        .when("as it is tried again")
        .await?;
    web.is(keeps_finalizer()).await?;
    refusals.clear().await?;
    goes(cx, &web, cx.limits().services_after(began.elapsed())).await
}

async fn accepts_absence(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.balancer().vanishes().await?;
    web.delete().await?;
    web.becomes(gone()).when("though its load balancer was absent").await
}

async fn leaves_nothing(cx: &CheckCx) -> Verdict {
    let mut plan = load_balancer("web").port(80).port(443);
    // Where they are declared, so that there may be a firewall of its own.
    if cx.declares(Capability::SourceRanges) {
        plan = plan.with(|s| s.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".to_owned()]));
    }
    let web = cx.service(plan).await?.provisioned().await?;
    web.delete().await?;
    goes(cx, &web, cx.limits().watch()).await
}

async fn leaves_the_cloud_as_it_was(cx: &CheckCx) -> Verdict {
    cx.deploy_ccm().await?;
    // Where nothing was ever made, nothing can be left.
    let web = cx.service(load_balancer("last").port(80)).await?.provisioned().await?;
    web.delete().await?;
    web.becomes(gone()).within(cx.limits().service_after(0)).await?;
    cx.leftovers().becomes(as_before()).within(cx.limits().service_after(1)).when("again").await
}
