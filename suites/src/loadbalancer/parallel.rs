//! How many Services a CCM works on at the same time, and that it never does twice on one (contract SVC-ERR-08).

use super::needs::LB;
use harness::check::{Facility, Verdict};
use harness::cloud::{Effect, Op};
use harness::cx::matchers::one_active;
use harness::cx::{Check, CheckCx, Subject, load_balancer};
use harness::probe::holds;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

const SC: &str = "k8s.io/cloud-provider service/controller.go Run";

pub(super) const CHECKS: &[Check] = &[
    Check::must(
        "SVC-ERR-08.workers",
        "Services are provisioned side by side, as many as there are workers",
        SC,
        |cx| Box::pin(works_side_by_side(cx)),
    )
    .should()
    .without_machines()
    .needs(LB)
    .with(&[Facility::Faults])
    .alone()
    .takes(4),
    Check::must(
        "SVC-ERR-08.one-at-a-time",
        "a Service is never worked on twice at the same time",
        SC,
        |cx| Box::pin(works_once_on_each(cx)),
    )
    .should()
    .without_machines()
    .needs(LB)
    .with(&[Facility::Barriers])
    .takes(3),
];

/// How many Services come at once.
const SERVICES: u32 = 8;
/// How long the cloud takes to make a load balancer.
const LATENCY: Duration = Duration::from_secs(2);

async fn works_side_by_side(cx: &CheckCx) -> Verdict {
    let slow = [Effect::Latency { ms: u64::try_from(LATENCY.as_millis()).unwrap_or(u64::MAX) }];
    let mut services = Vec::new();
    for n in 0..SERVICES {
        let web = cx.service(load_balancer(&format!("web-{n}")).port(80).not_yet()).await?;
        web.cloud().meets(format!("creation that takes {LATENCY:?}"), &slow).to(&[Op::LbCreate]).await?;
        services.push(web);
    }
    for web in &services {
        web.wants_a_balancer().await?;
    }
    let began = Instant::now();
    let rounds = SERVICES.div_ceil(cx.workers().max(1));
    let limit = rounds * LATENCY + cx.limits().load_balancer();
    for web in &services {
        let left = limit.saturating_sub(began.elapsed());
        let balancer = web.balancer();
        let made = balancer.becomes(one_active()).within(left);
        made.when(format!("as one of {SERVICES}, by {} workers", cx.workers())).await?;
    }
    cx.record("provisioned_ms", began.elapsed().as_millis());
    Ok(())
}

async fn works_once_on_each(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let held = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    held.is_reached().await?;
    for edit in 0..5 {
        web.patch(&json!({"metadata": {"annotations": {"example.com/edit": edit.to_string()}}})).await?;
    }
    let one = holds("holds one call and no more", |waiting: &u64| *waiting <= 1);
    held.keeps(one.expecting("one call at most")).when("though the Service is edited meanwhile").await?;
    held.release().await?;
    web.provisioned().await?;
    Ok(())
}
