//! Services that are deleted while something is in the way: the cloud does not answer, a creation is in
//! progress, or the namespace is deleted with them (contract SVC-DEL, SVC-ERR-09).

use super::needs::LB;
use super::step_fails::FAILING;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1 as core;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-DEL-04", |cx| Box::pin(deletes_nothing_unseen(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        // Lists name no Service, so every client that lists gets no answer.
        .alone()
        .takes(9),
    Check::of("SVC-DEL-04.unrecorded", |cx| Box::pin(deletes_nothing_unrecorded(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults, Facility::Barriers])
        .alone()
        .takes(25),
    Check::of("SVC-DEL-06", |cx| Box::pin(leaves_nothing_half_made(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
    Check::of("SVC-DEL-08", |cx| Box::pin(goes_with_the_namespace(cx))).without_machines().needs(LB),
    Check::of("SVC-ERR-09", |cx| Box::pin(survives_a_vanished_service(cx)))
        .on_objects()
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers]),
];

/// For how long the cloud does not answer about a load balancer that the CCM does not know of: longer than
/// the controller's first back-off, so that a second attempt fails as well.
const UNKNOWN: Duration = Duration::from_secs(7);

/// Matches when a call was made and not answered, or when the Service is gone without a call.
fn asked_or_gone() -> Matcher<(u64, Option<Arc<core::Service>>), bool> {
    matcher("is asked about, or needs no question", |(asked, service): &(u64, Option<Arc<core::Service>>)| {
        match (asked, service) {
            (_, None) => Observation::Matched(false),
            (1.., Some(_)) => Observation::Matched(true),
            (0, Some(_)) => Observation::Pending(String::new()),
        }
    })
    .expecting("a call to the cloud about it, or its end")
}

/// Matches a Service with its finalizer, or one that has left nothing in the cloud. The Service is read first: what is there
/// afterwards stays.
fn stays_or_leaves_nothing() -> Matcher<(Option<Arc<core::Service>>, Inventory)> {
    let (stays, left) = (keeps_finalizer(), nothing_left());
    holds("carries the finalizer until nothing is left", move |(service, held)| {
        stays.matches(service) == Observation::Matched(()) || left.matches(held) == Observation::Matched(())
    })
    .expecting(format!("the Service with finalizer {F_LB}, or nothing in the cloud"))
}

async fn deletes_nothing_unseen(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let blind = hides_load_balancers(cx).await?;
    keeps_what_it_cannot_see(cx, &web, blind, FAILING).await
}

async fn deletes_nothing_unrecorded(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let lost = web.cloud().loses_the_answer().to(&[Op::LbCreate]).times(1).await?;
    // A CCM may look at once for a load balancer that it got no answer about.
    let creation = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    creation.is_reached_unless(web.is_served()).await?;
    let blind = hides_load_balancers(cx).await?;
    creation.release().await?;
    lost.hits_unless(1, web.is_served()).await?;
    keeps_what_it_cannot_see(cx, &web, blind, UNKNOWN).await
}

async fn hides_load_balancers(cx: &CheckCx) -> Result<Fault<'_>, CheckError> {
    cx.cloud().anything().fails().to(&[Op::LbGet, Op::LbList]).await
}

/// Deletes the Service while the cloud does not answer what it has for it, for the time `unknown`.
async fn keeps_what_it_cannot_see(
    cx: &CheckCx,
    web: &Service<'_>,
    blind: Fault<'_>,
    unknown: Duration,
) -> Verdict {
    web.delete().await?;
    if (&blind, web).becomes(asked_or_gone()).await? {
        // A CCM that knows names without looking can delete everything.
        let balancer = web.balancer();
        (web, &balancer)
            .keeps(stays_or_leaves_nothing())
            .within(unknown)
            .when("while the inventory of the cloud cannot be read")
            .await?;
    } else {
        // The CCM knew without a call. Whether it was right shows below.
        cx.record("asked", "nothing");
    }
    // Each failure has doubled the pause, and a change of the Service or of Nodes may have caused an earlier
    // attempt.
    let failures = u32::try_from(blind.read(ReadSource::Origin).await?).unwrap_or(u32::MAX).min(4);
    blind.clear().await?;
    goes(web, cx.limits().services_after(unknown).max(cx.limits().service_after(failures))).await
}

async fn goes(web: &Service<'_>, limit: Duration) -> Verdict {
    let limit = limit + web.cx().limits().load_balancer_work();
    web.balancer().becomes(nothing_left()).within(limit).await?;
    web.becomes(gone()).within(limit).await
}

async fn leaves_nothing_half_made(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let creation = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    creation.is_reached_unless(web.is_served()).await?;
    web.delete().await?;
    web.keeps(keeps_finalizer()).when("while its load balancer is being made").await?;
    creation.release().await?;
    goes(&web, cx.limits().service_after(2)).await?;
    web.balancer().keeps(nothing_left()).when("after its Service has gone").await
}

async fn goes_with_the_namespace(cx: &CheckCx) -> Verdict {
    let mut all = Vec::new();
    for name in ["one", "two", "three"] {
        all.push(cx.service(load_balancer(name).port(80)).await?);
    }
    for web in &all {
        web.gets_published().await?;
    }
    cx.delete_namespace().await?;
    let services = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let limit = services * (cx.limits().watch() + cx.limits().load_balancer_work());
    for web in &all {
        goes(web, limit).await?;
    }
    cx.own_namespace().becomes(gone()).within(limit).when("with all that was in it").await
}

async fn survives_a_vanished_service(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let creation = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    creation.is_reached_unless(web.is_served()).await?;
    // The finalizer is removed: the CCM then need not clean up (contract SVC-DEL-11), and this check does.
    web.vanishes().await?;
    web.becomes(gone()).await?;
    creation.release().await?;
    // The object that the CCM wants to update does not exist any more. The cloud may even have refused the
    // creation, because a machine among the backends was deleted.
    web.rests().await?;
    let after = cx.service(load_balancer("after").port(80)).await?;
    let served = after.gets_published().await.map(drop);
    web.balancer().vanishes().await?;
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ccm_that_does_not_query_is_not_waited_for() {
        let there = || Some(Arc::new(core::Service::default()));
        assert_eq!(asked_or_gone().matches(&(0, there())), Observation::Pending(String::new()));
        assert_eq!(asked_or_gone().matches(&(2, there())), Observation::Matched(true));
        assert_eq!(asked_or_gone().matches(&(0, None)), Observation::Matched(false));
    }
}
