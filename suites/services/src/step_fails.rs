//! One of several steps fails: the following steps are not done as if it had succeeded (contract SVC-DEL,
//! SVC-NODES-11).

use super::delete::{goes, restricted};
use super::needs::{LB, NODES_BEHIND_LB};
use super::nodes::{has_backend, kept_out, of_each_policy};
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;
use suites_common::failures::every_other_fails;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-DEL-02.auxiliaries", |cx| Box::pin(waits_for_auxiliaries_that_stay(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(6),
    Check::of("SVC-DEL-04.half", |cx| Box::pin(waits_though_half_is_unseen(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        // Lists name no Service, so every client that lists gets no answer.
        .alone()
        .takes(13),
    Check::of("SVC-DEL-01.unseen", |cx| Box::pin(waits_for_an_end_unseen(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Settings])
        .alone()
        .takes(9),
    Check::of("SVC-NODES-11.look-up", |cx| Box::pin(follows_a_node_after_all(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .with(&[Facility::Faults])
        .alone()
        .takes(8),
];

type MaybeService = Option<Arc<core::Service>>;

/// Matches a Service that still exists while the cloud has anything of it.
fn outlasts_all_of_it() -> Matcher<(MaybeService, Inventory)> {
    let waits = waits_to_be_deleted();
    let expected = waits.expected().to_owned();
    matcher("stays, held by the finalizer", move |(service, held): &(MaybeService, Inventory)| {
        match held.load_balancers.is_empty() && held.auxiliaries.is_empty() {
            true => Observation::Matched(()),
            false => waits.matches(service),
        }
    })
    .expecting(expected)
}

/// For how long a step fails: longer than most clients repeat a call by themselves, and shorter than the
/// controller's first back-off. So one attempt fails and the next one succeeds.
pub(super) const FAILING: Duration = Duration::from_secs(4);

/// Clears the fault and waits until everything of the Service is gone.
async fn goes_after(cx: &CheckCx, web: &Service<'_>, fault: Fault<'_>) -> Verdict {
    let failures = u32::try_from(fault.read(ReadSource::Origin).await?).unwrap_or(u32::MAX).clamp(1, 4);
    cx.record("failures", failures);
    fault.clear().await?;
    goes(cx, web, cx.limits().services_after(FAILING).max(cx.limits().service_after(failures))).await
}

/// Deletes the Service, and waits until the harness sees its deletion.
async fn is_deleted(web: &Service<'_>) -> Verdict {
    web.delete().await?;
    let going_or_gone = holds("is being deleted, or gone", |service: &MaybeService| {
        service.as_ref().is_none_or(|service| service.metadata.deletion_timestamp.is_some())
    });
    web.becomes(going_or_gone).await
}

async fn waits_for_auxiliaries_that_stay(cx: &CheckCx) -> Verdict {
    let web = cx.service(restricted(cx, load_balancer("web").port(80))).await?.provisioned().await?;
    web.rests().await?;
    cx.record("auxiliaries", web.balancer().read(ReadSource::Origin).await?.auxiliaries.len());
    let fault = web.cloud().fails().to(&[Op::AuxDelete]).must_be_met().await?;
    is_deleted(&web).await?;
    let balancer = web.balancer();
    let both = (&web, &balancer);
    let waits = both.keeps(outlasts_all_of_it()).within(FAILING);
    waits.when("while what belongs to its load balancer cannot be deleted").await?;
    goes_after(cx, &web, fault).await
}

async fn waits_though_half_is_unseen(cx: &CheckCx) -> Verdict {
    let look_ups: [(&'static str, &'static str, &[Op]); 2] = [
        ("balancers", "while every other look-up of load balancers fails", &[Op::LbGet, Op::LbList]),
        ("auxiliaries", "while every other look-up of what belongs to them fails", &[Op::AuxRead]),
    ];
    for (name, when, ops) in look_ups {
        let web = cx.service(restricted(cx, load_balancer(name).port(80))).await?.provisioned().await?;
        web.rests().await?;
        let fault = cx.cloud().anything().meets(when, &every_other_fails(500)).to(ops).await?;
        is_deleted(&web).await?;
        let balancer = web.balancer();
        (&web, &balancer).keeps(outlasts_all_of_it()).within(FAILING).when(when).await?;
        goes_after(cx, &web, fault).await?;
    }
    Ok(())
}

async fn waits_for_an_end_unseen(cx: &CheckCx) -> Verdict {
    let takes = FAILING + Duration::from_secs(2);
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    web.cloud().deletes_for(takes).to(&[Op::LbDelete]).await?;
    is_deleted(&web).await?;
    let balancer = web.balancer();
    balancer.becomes(one_balancer("is being deleted", |lb| lb.state == LbState::Deleting)).await?;
    let fault = cx.cloud().anything().fails().to(&[Op::LbGet, Op::LbList]).await?;
    let both = (&web, &balancer);
    let waits = both.keeps(outlasts_all_of_it()).within(FAILING);
    waits.when("while it is unknown whether its load balancer is gone").await?;
    goes_after(cx, &web, fault).await
}

/// The calls that look up a load balancer and its resources.
const LOOK_UPS: &[Op] = &[Op::LbGet, Op::LbList, Op::AuxRead];

async fn follows_a_node_after_all(cx: &CheckCx) -> Verdict {
    let (machine, node) = kept_out(cx, "admitted").await?;
    let all = of_each_policy(cx).await?;
    try_join_all(all.iter().map(Service::rests)).await?;
    let fault = cx.cloud().anything().fails().to(LOOK_UPS).await?;
    node.label(L_EXCL, None).await?;
    let when = "while load balancers cannot be looked up";
    try_join_all(all.iter().map(async |web| web.keeps(keeps_finalizer()).within(FAILING).when(when).await))
        .await?;
    cx.record("failed_look_ups", fault.read(ReadSource::Origin).await?);
    fault.clear().await?;
    for web in &all {
        let follows = web.balancer();
        let follows = follows.becomes(has_backend(&machine)).within(cx.limits().service_after(2));
        follows.when("once load balancers can be looked up").await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_service_is_deleted_only_once_nothing_is_left() {
        let held = |auxiliaries: serde_json::Value| -> Inventory {
            let all =
                json!({"instances": [], "load_balancers": [], "auxiliaries": auxiliaries, "routes": []});
            serde_json::from_value(all).expect("an inventory")
        };
        let firewall = json!([{"id": "f", "kind": "firewall", "name": "f", "spec": {}}]);
        assert_eq!(outlasts_all_of_it().matches(&(None, held(json!([])))), Observation::Matched(()));
        assert_ne!(outlasts_all_of_it().matches(&(None, held(firewall))), Observation::Matched(()));
    }
}
