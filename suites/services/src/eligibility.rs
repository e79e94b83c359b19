//! Which Services get a load balancer (contract SVC-ELIG).

use super::needs::LB;
use harness_testkit::prelude::*;
use serde_json::json;
use suites_common::observing::whether;
use suites_common::services::left_alone;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-ELIG-01", |cx| Box::pin(provisions_without_endpoints(cx))).needs(LB),
    Check::of("SVC-ELIG-02", |cx| Box::pin(leaves_classed_services_alone(cx)))
        .by_calls()
        .needs(LB)
        .served_since(21, "Service spec.loadBalancerClass")
        .takes(46),
    Check::of("SVC-ELIG-02.event", |cx| Box::pin(tells_nothing_of_classed_services(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB)
        .served_since(21, "Service spec.loadBalancerClass"),
    Check::of("SVC-ELIG-04", |cx| Box::pin(leaves_other_types_alone(cx))).by_calls().needs(LB).takes(46),
    Check::of("SVC-ELIG-04.event", |cx| Box::pin(tells_nothing_of_other_types(cx)))
        .in_quiet()
        .without_machines()
        .needs(LB),
    Check::of("SVC-ELIG-05", |cx| Box::pin(provisions_in_spite_of_labels(cx))).needs(LB),
];

async fn provisions_without_endpoints(cx: &CheckCx) -> Verdict {
    cx.service(load_balancer("no-endpoints").port(80)).await?.provisioned().await?;
    let unselective = load_balancer("no-selector").port(80).with(|spec| spec.selector = None);
    cx.service(unselective).await?.provisioned().await?;
    Ok(())
}

fn of_another_class() -> ServicePlan {
    load_balancer("classed").port(80).with(|s| s.load_balancer_class = Some("example.com/other".to_owned()))
}

async fn leaves_classed_services_alone(cx: &CheckCx) -> Verdict {
    let classed = cx.service(of_another_class()).await?;
    // A Service of the same kind without a class proves that the service loop is working.
    cx.service(load_balancer("plain").port(80)).await?.provisioned().await?;
    classed.patch(&json!({"metadata": {"annotations": {"example.com/edited": "1"}}})).await?;
    let calls = classed.calls();
    (&classed, &calls).keeps(left_alone()).within(cx.limits().quiet_services()).await?;
    classed.delete().await?;
    classed.becomes(gone()).when("without a release by another controller").await?;
    calls.keeps(no_calls()).when("after its deletion either").await
}

/// Creates one Service of each other type.
async fn of_other_types(cx: &CheckCx) -> Result<Vec<Service<'_>>, CheckError> {
    let mut others = Vec::new();
    for (name, type_) in [("inside", "ClusterIP"), ("on-nodes", "NodePort"), ("elsewhere", "ExternalName")] {
        let plan = load_balancer(name).port(80).with(|spec| {
            spec.type_ = Some(type_.to_owned());
            spec.external_name = (type_ == "ExternalName").then(|| "elsewhere.example".to_owned());
        });
        others.push(cx.service(plan).await?);
    }
    Ok(others)
}

async fn leaves_other_types_alone(cx: &CheckCx) -> Verdict {
    let others = of_other_types(cx).await?;
    // A Service that does want a load balancer proves that the service loop is working.
    cx.service(load_balancer("plain").port(80)).await?.provisioned().await?;
    let window = cx.limits().quiet_services();
    let left = others.iter().map(async |one| (one, &one.calls()).keeps(left_alone()).within(window).await);
    futures::future::try_join_all(left).await.map(drop)
}

/// Components of a control plane that may send Events about any Service.
const OTHERS: &[&str] = &[
    "endpoint-controller",
    "endpoint-slice-controller",
    "endpoint-slice-mirroring-controller",
    "ipallocator-repair-controller",
    "kube-proxy",
    "portallocator-repair-controller",
];

/// Checks that the sender of the Events about its own Services sends none about these. A recorder writes one
/// Event after the other: when the Event about a later Service exists, those about earlier ones would exist
/// as well.
async fn tells_nothing_of(cx: &CheckCx, others: &[Service<'_>]) -> Verdict {
    let plain = cx.service(load_balancer("plain").port(80)).await?.provisioned().await?;
    let events = plain.events();
    let reports = events.becomes(tells("Normal", "EnsuredLoadBalancer")).within(cx.limits().event());
    if !whether(reports.when("next to Services that are not for the CCM").await)? {
        let why = "the CCM records no Events about its own Services: see SVC-CREATE-17";
        return Err(CheckError::NotObservable(why.to_owned()));
    }
    for other in others {
        other.events().is(reported_only_by(OTHERS)).await?;
    }
    Ok(())
}

async fn tells_nothing_of_classed_services(cx: &CheckCx) -> Verdict {
    let classed = cx.service(of_another_class()).await?;
    classed.patch(&json!({"metadata": {"annotations": {"example.com/edited": "1"}}})).await?;
    tells_nothing_of(cx, &[classed]).await
}

async fn tells_nothing_of_other_types(cx: &CheckCx) -> Verdict {
    let others = of_other_types(cx).await?;
    tells_nothing_of(cx, &others).await
}

async fn provisions_in_spite_of_labels(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80);
    let labelled = plan
        .label("service.kubernetes.io/service-proxy-name", "example")
        .label("service.kubernetes.io/headless", "");
    cx.service(labelled).await?.provisioned().await?;
    Ok(())
}
