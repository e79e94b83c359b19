//! Updates (contract SVC-UPD).

use super::{LB, balancer_becomes, provisioned};
use crate::judges::{MaybeService, keeps_finalizer, nothing_left, publishes};
use harness::check::{Facility, Stop, Verdict};
use harness::cloud::{Inventory, LoadBalancer, Op};
use harness::cx::{Check, CheckCx, ServiceRef, load_balancer};
use harness::k8s::{F_LB, has_finalizer};
use harness::probe::holds;
use serde_json::{Value, json};

const NEEDS_UPDATE: &str =
    "k8s.io/cloud-provider service/controller.go needsUpdate; kubernetes test/e2e/network/loadbalancer.go";

pub(super) const CHECKS: [Check; 3] = [
    Check::must(
        "SVC-UPD-01",
        "the load balancer follows each field that matters to it",
        NEEDS_UPDATE,
        |cx| Box::pin(follows_each_field(cx)),
    )
    .needs(LB),
    Check::must(
        "SVC-UPD-02",
        "edits keep the load balancer and its address",
        "kubernetes test/e2e/network/loadbalancer.go",
        |cx| Box::pin(keeps_identity(cx)),
    )
    .needs(LB),
    Check::must(
        "SVC-UPD-05",
        "a Service that is no longer of type LoadBalancer loses balancer and auxiliaries, then its finalizer",
        "k8s.io/cloud-provider service/controller.go; kubernetes service/strategy.go dropTypeDependentFields",
        |cx| Box::pin(cleans_up_on_type_change(cx)),
    )
    .needs(LB)
    .with(&[Facility::Barriers]),
];

async fn follows_each_field(cx: &CheckCx) -> Verdict {
    let (service, _) = provisioned(cx, load_balancer("web").port(80)).await?;
    let ports = json!([{"name": "alt", "port": 8080, "protocol": "TCP"}]);
    cx.patch_service(&service, &json!({"spec": {"ports": ports}})).await?;
    balancer_becomes(
        cx,
        &service,
        "a changed port arrives",
        "one frontend, on port 8080",
        |lb| matches!(lb.frontends.as_slice(), [f] if f.port == 8080),
    )
    .await?;
    let declared = &cx.session().plan().profile.capabilities;
    if declared.source_ranges {
        cx.patch_service(&service, &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})).await?;
        source_ranges_become(cx, &service, "192.0.2.0/24").await?;
    }
    if declared.affinity {
        cx.patch_service(&service, &json!({"spec": {"sessionAffinity": "ClientIP"}})).await?;
        let promise = "a changed session affinity arrives";
        balancer_becomes(cx, &service, promise, "session affinity ClientIP", |lb| {
            lb.session_affinity == "ClientIP"
        })
        .await?;
    }
    cx.patch_service(&service, &json!({"spec": {"externalTrafficPolicy": "Local"}})).await?;
    let stored = cx.services_api(&service.namespace).get(&service.name).await?;
    let port = stored.spec.and_then(|s| s.health_check_node_port).unwrap_or_default() as u16;
    let expected = format!("health check on port {port}");
    balancer_becomes(cx, &service, "a changed traffic policy arrives", expected, move |lb| {
        lb.health_check.as_ref().is_some_and(|h| h.port == port)
    })
    .await
}

/// The ranges stand on the balancer itself or on a firewall of its own, as the provider does it.
async fn source_ranges_become(cx: &CheckCx, service: &ServiceRef, range: &'static str) -> Result<(), Stop> {
    let restricted =
        holds(format!("source ranges [{range}] on the balancer or its firewall"), move |all: &Inventory| {
            let on_balancer = all.load_balancers.iter().any(|lb| lb.source_ranges == [range]);
            let on_firewall = all.auxiliaries.iter().any(|aux| aux.spec["source_ranges"] == json!([range]));
            on_balancer || on_firewall
        });
    let read = async || cx.inventory_of(service).await;
    cx.eventually("changed source ranges arrive", cx.limits().watch(), read, restricted).await
}

/// What is edited, the patch, and how the load balancer shows it.
type Edit = (&'static str, Value, fn(&LoadBalancer) -> bool);

async fn keeps_identity(cx: &CheckCx) -> Verdict {
    let (service, before) = provisioned(cx, load_balancer("web").port(80)).await?;
    let edits: [Edit; 3] = [
        ("port", json!({"spec": {"ports": [{"name": "p80", "port": 81, "protocol": "TCP"}]}}), |lb| {
            lb.frontends.iter().any(|f| f.port == 81)
        }),
        ("affinity", json!({"spec": {"sessionAffinity": "ClientIP"}}), |lb| {
            lb.session_affinity == "ClientIP"
        }),
        ("policy", json!({"spec": {"externalTrafficPolicy": "Local"}}), |lb| {
            lb.health_check.as_ref().is_some_and(|h| h.protocol == "HTTP" && h.port >= 30_000)
        }),
    ];
    let affinity = cx.session().plan().profile.capabilities.affinity;
    for (what, patch, arrived) in edits.into_iter().filter(|(what, ..)| affinity || *what != "affinity") {
        cx.patch_service(&service, &patch).await?;
        let (id, addresses) = (before.id.clone(), before.addresses.clone());
        let read = async || cx.load_balancers(&service).await;
        let expected = format!("the edit on load balancer {id} with its address unchanged");
        let same = harness::probe::judge(expected, move |list: &Vec<LoadBalancer>| match list.as_slice() {
            [lb] if lb.id != id => harness::probe::Seen::Never("it was replaced".to_owned()),
            [lb] if lb.addresses != addresses => {
                harness::probe::Seen::Never("its address changed".to_owned())
            }
            [lb] if arrived(lb) => harness::probe::Seen::Yes(()),
            _ => harness::probe::Seen::NotYet(String::new()),
        });
        let promise = format!("an edit of the {what} arrives on the same load balancer");
        cx.eventually(&promise, cx.limits().watch(), read, same).await?;
    }
    let read = async || Ok(cx.find_service(&service));
    cx.eventually("the Service's ingress is unchanged", cx.limits().watch(), read, publishes(&before)).await
}

async fn cleans_up_on_type_change(cx: &CheckCx) -> Verdict {
    let (service, lb) = provisioned(cx, load_balancer("web").port(80)).await?;
    let barrier = cx.raise_barrier(&[Op::LbDelete], &lb.id).await?;
    cx.patch_service(&service, &json!({"spec": {"type": "ClusterIP"}})).await?;
    let limit = cx.limits().watch();
    cx.eventually(
        "the CCM asks the cloud to delete the load balancer",
        limit,
        async || barrier.waiting().await,
        holds("a deletion waiting at the barrier", |waiting: &u64| *waiting > 0),
    )
    .await?;
    let read = async || Ok(cx.find_service(&service));
    let settle = cx.limits().settle();
    cx.consistently(
        "the finalizer stays while the cloud has the load balancer",
        settle,
        read,
        keeps_finalizer(),
    )
    .await?;
    barrier.release().await?;
    let read = async || cx.inventory_of(&service).await;
    cx.eventually("everything of it is gone from the cloud", limit, read, nothing_left(&service)).await?;
    let let_go = holds(format!("the Service without finalizer {F_LB}"), |service: &MaybeService| {
        service.as_ref().is_some_and(|s| !has_finalizer(s, F_LB))
    });
    let read = async || Ok(cx.find_service(&service));
    cx.eventually("then the finalizer goes", limit, read, let_go).await
}
