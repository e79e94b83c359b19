//! Requests that the cloud accepts but does not carry out (contract SVC-ERR-01, SVC-UPD-01).

use super::needs::LB;
use super::retry::follows_an_edit_in;
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-ERR-01.action", |cx| Box::pin(is_made_after_all(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(6),
    Check::of("SVC-UPD-01.action", |cx| Box::pin(follows_after_all(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .takes(7),
];

async fn is_made_after_all(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let fault = web.cloud().fails_actions().to(&[Op::LbCreate]).times(1).await?;
    web.wants_a_balancer().await?;
    fault.hits_unless(1, web.is_served()).await?;
    let limit = cx.limits().service_after(2) + cx.limits().load_balancer_work();
    let lb = web.balancer().becomes(one_active()).within(limit).await?;
    web.becomes(publishes(&lb)).within(limit).when("after its creation was accepted, and failed").await
}

async fn follows_after_all(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    follows_an_edit_in(&web, web.cloud().fails_actions(), "after its edit was accepted, and failed").await
}
