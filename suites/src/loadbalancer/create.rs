//! Eligibility, creation and status (contract SVC-ELIG, SVC-CREATE, SVC-ERR).

use super::{LB, balancer_becomes, provisioned, published};
use crate::judges::{MaybeService, initialised, keeps_finalizer};
use fake_cloud::admin::{Effect, Entry, Fault, Inventory, LoadBalancer, Match, Op};
use harness::check::{Capability, Facility, Stop, Verdict};
use harness::cx::{Check, CheckCx, NodePlan, ServiceRef, load_balancer};
use harness::k8s::{F_LB, L_EXCL, has_finalizer, ingress};
use harness::probe::{Observed, holds};
use harness::session::show_entry;
use kube::ResourceExt;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const WANTS: &str = "k8s.io/cloud-provider service/controller.go wantsLoadBalancer";
const ENSURE: &str = "k8s.io/cloud-provider service/controller.go ensureLoadBalancer";
const PROVIDER: &str = "k8s.io/cloud-provider cloud.go EnsureLoadBalancer";

pub(super) const CHECKS: [Check; 10] = [
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
    .needs(LB),
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
    .alone()
    .takes(8),
    Check::must(
        "SVC-CREATE-04",
        "at most one load balancer exists per Service, also when the answer to its creation is lost",
        PROVIDER,
        |cx| Box::pin(creates_only_one(cx)),
    )
    .needs(LB)
    .takes(10),
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
    .takes(36),
];

/// SVC-CREATE-19 restarts the leader and lives with the failover checks; its body is here with its kin.
pub(crate) const RESTART: Check = Check::must(
    "SVC-CREATE-19",
    "a restart leaves load balancers, their addresses and the Services' status as they are",
    "k8s.io/cloud-provider service/controller.go: every Service is ensured at start",
    |cx| Box::pin(survives_a_restart(cx)),
)
.needs(&[Capability::LoadBalancer, Capability::LeaderElection])
.with(&[Facility::CloudControl, Facility::ProcessControl])
.alone()
.takes(10);

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
    let read = async || Ok((cx.find_service(&classed), requests_about(cx, &classed)));
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
fn requests_about(cx: &CheckCx, service: &ServiceRef) -> Vec<String> {
    cx.journal(|entry| entry.owner.as_deref() == Some(&service.owner)).iter().map(show_entry).collect()
}

async fn persists_the_finalizer_first(cx: &CheckCx) -> Verdict {
    // The barrier is bound to the Service's owner name, so the Service has to exist before it wants a load balancer.
    let service = cx
        .create_service(load_balancer("web").port(80).with(|s| s.type_ = Some("ClusterIP".to_owned())))
        .await?;
    let gate = cx.hold(&[Op::LbCreate, Op::AuxCreate], &service.owner).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the CCM asks the cloud for a load balancer",
        cx.limits().watch(),
        async || gate.waiting().await,
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
    gate.open().await?;
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
    let slow = fake_cloud::admin::Settings { provisioning_ms: Some(6_000), ..Default::default() };
    cx.set_cloud(&slow).await?;
    let service = cx.create_service(load_balancer("web").port(80)).await?;
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

async fn creates_only_one(cx: &CheckCx) -> Verdict {
    let service = cx
        .create_service(load_balancer("web").port(80).with(|s| s.type_ = Some("ClusterIP".to_owned())))
        .await?;
    // The creation takes effect, but its answer never arrives: a CCM that creates blindly makes a second one.
    let matching =
        Match { ops: vec![Op::LbCreate], resource: Some(service.owner.clone()), ..Match::default() };
    let fault =
        cx.inject(Fault { matching, effect: Effect::LoseAnswer, calls: Some(1), for_ms: None }).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "LoadBalancer"}})).await?;
    cx.eventually(
        "the CCM creates a load balancer and the answer is lost",
        cx.limits().watch(),
        async || cx.hits(&fault).await,
        holds("one lost answer", |hits: &u64| *hits == 1),
    )
    .await?;
    let limit = cx.limits().service_after(1);
    let read = async || cx.load_balancers(&service).await;
    let lb = cx
        .eventually("exactly one load balancer, found again", limit, read, crate::judges::one_active())
        .await?;
    let read = async || Ok(cx.find_service(&service));
    cx.eventually("its address is published", limit, read, crate::judges::publishes(&lb)).await?;
    let read = async || cx.load_balancers(&service).await;
    let one = holds("exactly one load balancer", |list: &Vec<LoadBalancer>| list.len() == 1);
    cx.consistently("no second one appears", Duration::from_secs(3), read, one).await
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
        let read = async || Ok(cx.find_node(&instance.name));
        cx.eventually("the Node is initialised", cx.limits().watch(), read, initialised()).await?;
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
    // Retries come after 5, 10 and 20 s. Whatever happens to a Node may bring one forward (contract section 24), so
    // what is bounded is the number of attempts by the number of Node events; a loop without back-off is far above.
    let watched = Instant::now();
    let nodes_before = node_events(cx);
    let attempts = |cx: &CheckCx| -> Vec<u64> {
        let about = |e: &Entry| e.op == Op::LbCreate && e.owner.as_deref() == Some(&service.owner);
        cx.journal(about).iter().map(|entry| entry.at_ms).collect()
    };
    let before = attempts(cx).len();
    let window = Duration::from_secs(16);
    let read = async || {
        let allowed = 4 + node_events(cx).saturating_sub(nodes_before);
        Ok((attempts(cx).len() - before, allowed))
    };
    let bounded = holds("at most 4 attempts and one per Node event", |(made, allowed): &(usize, usize)| {
        made <= allowed
    });
    cx.consistently("retries back off", window, read, bounded).await?;
    cx.clear(&fault).await?;
    let read = async || cx.load_balancers(&service).await;
    let promise = "the load balancer is there after the failures, without a restart";
    cx.eventually(promise, cx.limits().services_after(watched.elapsed()), read, crate::judges::one_active())
        .await?;
    let at = attempts(cx);
    cx.record("attempts_after_ms", format!("{:?}", at.iter().map(|t| t - at[0]).collect::<Vec<_>>()));
    Ok(())
}

/// How many events the watch on Nodes has shown so far.
fn node_events(cx: &CheckCx) -> usize {
    cx.session().world().nodes.events_seen()
}

async fn survives_a_restart(cx: &CheckCx) -> Verdict {
    cx.disturbs_ccm();
    let (service, before) = provisioned(cx, load_balancer("web").port(80)).await?;
    let leader = cx.active_replica().await?;
    let transitions = cx.lease_transitions();
    let mark = cx.session().journal().mark();
    cx.kill(&leader).await?;
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
        cx.session().journal().since(mark, |e| e.owner.as_deref() == Some(&service.owner)).len()
    };
    cx.eventually(
        "the new leader looks at the Service",
        cx.limits().watch(),
        async || Ok(seen(cx)),
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
    let writes = cx.session().journal().since(mark, |e| {
        e.owner.as_deref() == Some(&service.owner) && matches!(e.op, Op::LbCreate | Op::LbDelete)
    });
    if !writes.is_empty() {
        let seen = writes.iter().map(show_entry).collect::<Vec<_>>().join("; ");
        return Err(Stop::unmet("nothing is created or deleted for it", "no create and no delete", seen));
    }
    let Some(stored) = cx.find_service(&service) else {
        return Err(Stop::unmet("the Service is still there", "the Service", "nothing"));
    };
    match crate::judges::publishes(&before).judge(&Some(stored.clone())) {
        harness::probe::Seen::Yes(()) => Ok(()),
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
