//! Eligibility, creation and status (contract SVC-ELIG, SVC-CREATE, SVC-ERR).

use super::{LB, balancer_becomes, provisioned, published};
use crate::judges::{MaybeService, keeps_finalizer};
use crate::nodes::becomes_initialised;
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cloud::{Effect, Entry, Fault, Inventory, Match, Op};
use harness::cx::{Check, CheckCx, NodePlan, ServiceRef, load_balancer};
use harness::k8s::{
    F_LB, L_EXCL, T_TO_BE_DELETED, T_UNINIT, addresses, has_finalizer, has_taint, ingress, provider_id, ready,
};
use harness::probe::{Observed, ReadError, holds};
use harness::session::show_entry;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

const WANTS: &str = "k8s.io/cloud-provider service/controller.go wantsLoadBalancer";
const ENSURE: &str = "k8s.io/cloud-provider service/controller.go ensureLoadBalancer";
const PROVIDER: &str = "k8s.io/cloud-provider cloud.go EnsureLoadBalancer";

pub(super) const CHECKS: [Check; 9] = [
    Check::must("SVC-ELIG-01", "a LoadBalancer Service without endpoints or selector is provisioned", WANTS, |cx| {
        Box::pin(provisions_without_endpoints(cx))
    })
    .needs(LB),
    Check::must(
        "SVC-ELIG-02",
        "a Service with a loadBalancerClass gets no finalizer, status or cloud request",
        WANTS,
        |cx| Box::pin(leaves_classed_services_alone(cx)),
    )
    .needs(LB)
    .served_since(21, "Service spec.loadBalancerClass")
    .takes(46),
    Check::must(
        "SVC-CREATE-01",
        "the finalizer is persisted before the first request that creates anything",
        "k8s.io/cloud-provider service/controller.go syncLoadBalancerIfNeeded",
        |cx| Box::pin(persists_the_finalizer_first(cx)),
    )
    .needs(LB)
    .with(&[Facility::Barriers]),
    Check::must(
        "SVC-CREATE-02",
        "the Service publishes exactly the load balancer's addresses",
        "k8s.io/cloud-provider service/controller.go patchStatus; kubernetes test/e2e/network/loadbalancer.go",
        |cx| Box::pin(publishes_addresses(cx)),
    )
    .needs(LB),
    Check::must(
        "SVC-CREATE-03",
        "no address is published before the load balancer has one, and the Service converges by itself",
        PROVIDER,
        |cx| Box::pin(waits_for_an_address(cx)),
    )
    .needs(LB)
    .with(&[Facility::Faults])
    .takes(8),
    Check::must("SVC-CREATE-05", "every Service port is a frontend with its protocol and node port", PROVIDER, |cx| {
        Box::pin(has_every_port(cx))
    })
    .needs(LB),
    Check::must("SVC-CREATE-06", "the backends are the eligible Nodes", ENSURE, |cx| Box::pin(has_eligible_backends(cx)))
        .needs(&[Capability::LoadBalancer, Capability::Instances]),
    Check::must(
        "SVC-CREATE-08",
        "externalTrafficPolicy Local is health-checked by HTTP /healthz on its healthCheckNodePort",
        "k8s.io/cloud-provider service/helpers/helper.go GetServiceHealthCheckPathPort",
        |cx| Box::pin(checks_local_health(cx)),
    )
    .needs(LB),
    Check::must(
        "SVC-ERR-01",
        "a failed creation is retried with back-off and recovers without a restart",
        "k8s.io/cloud-provider service/controller.go minRetryDelay, maxRetryDelay",
        |cx| Box::pin(retries_with_backoff(cx)),
    )
    .needs(LB)
    .with(&[Facility::Faults])
    .takes(36),
];

async fn provisions_without_endpoints(cx: &CheckCx) -> Verdict {
    provisioned(cx, load_balancer("no-endpoints").port(80)).await?;
    provisioned(cx, load_balancer("no-selector").port(80).with(|spec| spec.selector = None)).await?;
    Ok(())
}

async fn leaves_classed_services_alone(cx: &CheckCx) -> Verdict {
    let classed = load_balancer("classed").port(80);
    let classed = cx
        .create_service(classed.with(|s| s.load_balancer_class = Some("example.com/other".to_owned())))
        .await?;
    // A Service of the same kind without a class proves that the service loop is at work all the while.
    provisioned(cx, load_balancer("plain").port(80)).await?;
    cx.patch_service(&classed, &json!({"metadata": {"annotations": {"example.com/edited": "1"}}})).await?;
    let untouched = holds(
        "no finalizer, no ingress, no request about it",
        |(service, requests): &(MaybeService, Vec<String>)| {
            let clean = service.as_ref().is_some_and(|s| !has_finalizer(s, F_LB) && ingress(s).is_empty());
            clean && requests.is_empty()
        },
    );
    let read = async || Ok((cx.find_service(&classed), requests_about(cx, &classed)?));
    cx.consistently("a Service with a class is not touched", cx.limits().quiet_services(), read, untouched)
        .await?;
    cx.delete_service(&classed).await?;
    cx.eventually(
        "its deletion needs nobody",
        cx.limits().watch(),
        async || Ok(cx.find_service(&classed)),
        harness::probe::absent("Service"),
    )
    .await
}

/// Requests to the cloud about a Service, as the journal shows them.
fn requests_about(cx: &CheckCx, service: &ServiceRef) -> Result<Vec<String>, ReadError> {
    let about = |entry: &Entry| entry.owner.as_deref() == Some(&service.owner);
    Ok(cx.journal(about)?.iter().map(show_entry).collect())
}

async fn persists_the_finalizer_first(cx: &CheckCx) -> Verdict {
    // The barrier is bound to the Service's owner name, so the Service has to exist before it wants a load balancer.
    let service = cx
        .create_service(load_balancer("web").port(80).with(|s| s.type_ = Some("ClusterIP".to_owned())))
        .await?;
    let barrier = cx.raise_barrier(&[Op::LbCreate, Op::AuxCreate], &service.owner).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the CCM asks the cloud for a load balancer",
        cx.limits().watch(),
        async || barrier.waiting().await,
        holds("a creation waiting at the barrier", |waiting: &u64| *waiting > 0),
    )
    .await?;
    // Read from the API server itself: this is about what is persisted, not about what a watch has shown so far.
    let stored = cx.services_api(&service.namespace).get(&service.name).await?;
    if !has_finalizer(&stored, F_LB) {
        return Err(Stop::unmet(
            "the finalizer is persisted before anything is created",
            format!("finalizer {F_LB} while the creation waits"),
            stored.observed(),
        ));
    }
    barrier.release().await?;
    published(cx, &service).await?;
    Ok(())
}

async fn publishes_addresses(cx: &CheckCx) -> Verdict {
    let (service, lb) = provisioned(cx, load_balancer("web").port(80)).await?;
    let read = async || Ok(cx.find_service(&service));
    cx.consistently(
        "the published addresses stay",
        Duration::from_secs(2),
        read,
        crate::judges::publishes(&lb),
    )
    .await
}

async fn waits_for_an_address(cx: &CheckCx) -> Verdict {
    let provisioning = Duration::from_secs(6);
    let service = cx
        .create_service(load_balancer("web").port(80).with(|s| s.type_ = Some("ClusterIP".to_owned())))
        .await?;
    let matching =
        Match { ops: vec![Op::LbCreate], resource: Some(service.owner.clone()), ..Match::default() };
    let effect = Effect::SlowProvisioning { ms: 6_000 };
    cx.inject(Fault { matching, effect, calls: None, for_ms: None }).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the cloud has a load balancer that is being provisioned",
        cx.limits().watch(),
        async || cx.load_balancers(&service).await,
        harness::probe::at_least(1, "load balancer"),
    )
    .await?;
    let read = async || Ok((cx.find_service(&service), cx.inventory_of(&service).await?));
    let honest = holds(
        "no ingress while the load balancer has no address",
        |(service, inventory): &(MaybeService, Inventory)| {
            let addressed = inventory.load_balancers.iter().any(|lb| !lb.addresses.is_empty());
            addressed || service.as_ref().is_some_and(|s| ingress(s).is_empty())
        },
    );
    cx.consistently("nothing is published too early", provisioning - Duration::from_secs(1), read, honest)
        .await?;
    // A provider may answer with a retry error, so the next try can be one back-off later.
    let limit = provisioning + cx.limits().service_after(1);
    let read = async || cx.load_balancers(&service).await;
    let lb =
        cx.eventually("one load balancer becomes active", limit, read, crate::judges::one_active()).await?;
    let read = async || Ok(cx.find_service(&service));
    cx.eventually(
        "its address is published without anybody's help",
        limit,
        read,
        crate::judges::publishes(&lb),
    )
    .await
}

async fn has_every_port(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web")
        .named_port("http", 80, "TCP")
        .named_port("tls", 443, "TCP")
        .named_port("alt", 8443, "TCP");
    let service = cx.create_service(plan).await?;
    let created = cx.services_api(&service.namespace).get(&service.name).await?;
    let wanted: BTreeSet<(u16, String, u16)> = created
        .spec
        .and_then(|s| s.ports)
        .into_iter()
        .flatten()
        .map(|p| (p.port as u16, p.protocol.unwrap_or_default(), p.node_port.unwrap_or_default() as u16))
        .collect();
    balancer_becomes(
        cx,
        &service,
        "every port of the Service is a frontend, and nothing else",
        format!("frontends (port, protocol, node port) {wanted:?}"),
        move |lb| {
            lb.frontends.iter().map(|f| (f.port, f.protocol.clone(), f.node_port)).collect::<BTreeSet<_>>()
                == wanted
        },
    )
    .await
}

async fn has_eligible_backends(cx: &CheckCx) -> Verdict {
    // Three Nodes of its own: one as usual, one excluded by label, one cordoned and NotReady but eligible all the same.
    let (usual, excluded, cordoned) =
        (cx.instance("usual"), cx.instance("excluded"), cx.instance("cordoned"));
    for instance in [&usual, &excluded, &cordoned] {
        cx.put_instance(instance).await?;
    }
    cx.create_node(NodePlan::new(&usual.name).backend()).await?;
    cx.create_node(NodePlan::new(&excluded.name).label(L_EXCL, "true")).await?;
    cx.create_node(NodePlan::new(&cordoned.name).backend().unschedulable().ready(harness::cx::Ready::False))
        .await?;
    for instance in [&usual, &excluded, &cordoned] {
        becomes_initialised(cx, "the Node is initialised", &instance.name).await?;
    }
    let service = cx.create_service(load_balancer("web").port(80)).await?;
    let (yes, also, no) = (usual.id.clone(), cordoned.id.clone(), excluded.id.clone());
    balancer_becomes(
        cx,
        &service,
        "the backends are the eligible Nodes",
        format!("backends with {yes} and {also}, without {no}"),
        move |lb| lb.backends.contains(&yes) && lb.backends.contains(&also) && !lb.backends.contains(&no),
    )
    .await
}

async fn checks_local_health(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80).with(|s| s.external_traffic_policy = Some("Local".to_owned()));
    let service = cx.create_service(plan).await?;
    let created = cx.services_api(&service.namespace).get(&service.name).await?;
    let port = created.spec.and_then(|s| s.health_check_node_port).unwrap_or_default() as u16;
    balancer_becomes(
        cx,
        &service,
        "the health check asks kube-proxy whether the Node has endpoints",
        format!("health check HTTP /healthz on port {port}"),
        move |lb| {
            lb.health_check
                .as_ref()
                .is_some_and(|h| h.protocol == "HTTP" && h.path == "/healthz" && h.port == port)
        },
    )
    .await
}

async fn retries_with_backoff(cx: &CheckCx) -> Verdict {
    let service = cx
        .create_service(load_balancer("web").port(80).with(|s| s.type_ = Some("ClusterIP".to_owned())))
        .await?;
    let fault = cx.fail_with(503, &[Op::LbCreate], &service.owner).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the first creation fails",
        cx.limits().watch(),
        async || cx.hits(&fault).await,
        holds("one failed creation", |hits: &u64| *hits >= 1),
    )
    .await?;
    let read = async || Ok(cx.find_service(&service));
    cx.eventually(
        "the finalizer is there while creation fails",
        cx.limits().watch(),
        read,
        keeps_finalizer(),
    )
    .await?;
    // Retries come after 5, 10 and 20 s. A change of the Nodes that load balancers could use may bring one forward
    // (contract section 24), so the number of attempts is bounded by that of such changes; a loop without back-off is
    // far above.
    let watched = Instant::now();
    let attempts = |cx: &CheckCx| -> Result<Vec<u64>, ReadError> {
        let about = |e: &Entry| e.op == Op::LbCreate && e.owner.as_deref() == Some(&service.owner);
        Ok(cx.journal(about)?.iter().map(|entry| entry.at_ms).collect())
    };
    let before = attempts(cx)?.len();
    let window = Duration::from_secs(16);
    let read = async || {
        let allowed = 4 + node_changes(cx, watched);
        Ok((attempts(cx)?.len() - before, allowed))
    };
    let bounded = holds(
        "at most 4 attempts and one per change of the eligible Nodes",
        |(made, allowed): &(usize, usize)| made <= allowed,
    );
    cx.consistently("retries back off", window, read, bounded).await?;
    cx.clear(&fault).await?;
    let read = async || cx.load_balancers(&service).await;
    let promise = "the load balancer is there after the failures, without a restart";
    cx.eventually(promise, cx.limits().services_after(watched.elapsed()), read, crate::judges::one_active())
        .await?;
    let at = attempts(cx)?;
    cx.record("attempts_after_ms", format!("{:?}", at.iter().map(|t| t - at[0]).collect::<Vec<_>>()));
    Ok(())
}

/// How often the set of Nodes that load balancers use has changed since then, or what they know of one: Nodes that came
/// or went, and all that decides whether one is eligible (k8s.io/cloud-provider service/controller.go, predicates).
fn node_changes(cx: &CheckCx, since: Instant) -> usize {
    cx.session().world().nodes.changes_since(since, |node| {
        let held_back = [has_taint(node, T_UNINIT), has_taint(node, T_TO_BE_DELETED)];
        let excluded = node.labels().contains_key(L_EXCL);
        (
            held_back,
            excluded,
            ready(node),
            provider_id(node),
            addresses(node),
            node.metadata.deletion_timestamp.is_some(),
        )
    })
}
