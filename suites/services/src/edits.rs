//! Edits of a Service that change more than one value: its type, many edits at once, and removed parts
//! (contract SVC-UPD).

use super::needs::{LB, RANGES};
use super::variants::admitted;
use futures::future::try_join;
use harness_testkit::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-UPD-04.cluster-ip", |cx| Box::pin(provisions_after_an_edit_of_the_type(cx, "ClusterIP")))
        .without_machines()
        .needs(LB),
    Check::of("SVC-UPD-04.node-port", |cx| Box::pin(provisions_after_an_edit_of_the_type(cx, "NodePort")))
        .without_machines()
        .needs(LB),
    Check::of("SVC-UPD-06", |cx| Box::pin(comes_back(cx))).without_machines().needs(LB),
    Check::of("SVC-UPD-08", |cx| Box::pin(ends_with_the_last_edit(cx))).without_machines().needs(LB),
    Check::of("SVC-UPD-09.port", |cx| Box::pin(removes_ports(cx))).by_calls().without_machines().needs(LB),
    Check::of("SVC-UPD-02.rest", |cx| Box::pin(keeps_the_rest(cx))).by_calls().without_machines().needs(LB),
    Check::of("SVC-UPD-09.failed", |cx| Box::pin(removes_a_port_at_the_second_try(cx)))
        .by_calls()
        .without_machines()
        .needs(LB)
        .with(&[Facility::Faults])
        .takes(6),
    Check::of("SVC-UPD-09.source-range", |cx| Box::pin(removes_a_range(cx)))
        .by_calls()
        .without_machines()
        .needs(RANGES),
];

async fn provisions_after_an_edit_of_the_type(cx: &CheckCx, before: &str) -> Verdict {
    let plan = load_balancer("web").port(80).with(|spec| spec.type_ = Some(before.to_owned()));
    let web = cx.service(plan).await?;
    let node_port = |spec: k8s_openapi::api::core::v1::ServiceSpec| {
        spec.ports.unwrap_or_default().first().and_then(|port| port.node_port)
    };
    let shown = |port: Option<i32>| {
        port.map_or_else(|| "no node port".to_owned(), |port| format!("node port {port}"))
    };
    let had = node_port(web.spec().await?);
    web.wants_a_balancer().await?;
    let web = web.provisioned().await?;
    let has = node_port(web.spec().await?);
    if had.is_some() && has != had {
        let promise = "it keeps its node port";
        return Err(web.breaks(promise, &shown(had), &shown(has)));
    }
    Ok(())
}

async fn comes_back(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.patch(&json!({"spec": {"type": "ClusterIP"}})).await?;
    let limit = cx.limits().load_balancer();
    web.balancer().becomes(nothing_left()).within(limit).when("of type ClusterIP").await?;
    web.becomes(lacks_finalizer()).within(limit).await?;
    web.wants_a_balancer().await?;
    web.provisioned().await?;
    Ok(())
}

/// How many edits follow one another.
const EDITS: u16 = 20;

async fn ends_with_the_last_edit(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    let port = |edit: u16| 8_000 + edit;
    for edit in 1..=EDITS {
        web.patch(&json!({"spec": {"ports": [{"name": "web", "port": port(edit), "protocol": "TCP"}]}}))
            .await?;
    }
    let last = port(EDITS);
    let arrived = |claim: &'static str| {
        one_balancer(claim, move |lb| matches!(lb.frontends.as_slice(), [f] if f.port == last))
            .expecting(format!("one frontend, on port {last}"))
    };
    let balancer = web.balancer();
    balancer.becomes(arrived("is as the last edit says")).within(cx.limits().service_after(1)).await?;
    balancer.keeps(arrived("stays as the last edit says")).await
}

/// Calls that bring an edit to the cloud.
pub(super) const EDIT_CALLS: &[Op] = &[Op::LbUpdate, Op::AuxUpdate];

/// Edits the ports of a Service: 8080 is the only one.
pub(super) async fn moves_to_8080(web: &Service<'_>) -> Verdict {
    web.patch(&json!({"spec": {"ports": [{"name": "alt", "port": 8080, "protocol": "TCP"}]}})).await
}

/// Whether the load balancer of the Service follows that edit already: what calls for it are for.
pub(super) async fn follows_8080(web: &Service<'_>) -> Verdict {
    web.balancer().is(one_balancer("follows the edit", serves_8080)).await
}

/// Whether it follows that edit.
pub(super) fn serves_8080(lb: &LoadBalancer) -> bool {
    matches!(lb.frontends.as_slice(), [only] if only.port == 8080)
}

pub(super) fn ports_of(lb: &LoadBalancer) -> BTreeSet<u16> {
    lb.frontends.iter().map(|f| f.port).collect()
}

/// Removes all ports except this one.
async fn keeps_only(web: &Service<'_>, port: i32) -> Verdict {
    let ports = web.spec().await?.ports.unwrap_or_default().into_iter().filter(|one| one.port == port);
    let kept: Vec<Value> = ports
        .map(|one| json!({"name": one.name, "port": port, "protocol": "TCP", "nodePort": one.node_port}))
        .collect();
    web.patch(&json!({"spec": {"ports": kept}})).await
}

/// Matches the same load balancer as before, with port 443 only.
fn serves_443_alone(before: &LoadBalancer) -> Matcher<Inventory> {
    no_other_than(
        before,
        "has the port that is left and no other",
        |held| matches!(held.load_balancers.as_slice(), [lb] if ports_of(lb) == BTreeSet::from([443])),
    )
}

/// Removes three ports at once. A CCM that removes one after the other may stop too early.
async fn removes_ports(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).port(443).port(8080).port(8443)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    keeps_only(&web, 443).await?;
    web.balancer().becomes(serves_443_alone(&before)).await
}

/// Edits the ports of a Service that uses every other declared option of a load balancer.
async fn keeps_the_rest(cx: &CheckCx) -> Verdict {
    let declared = [Capability::SourceRanges, Capability::Affinity, Capability::NodeTargets];
    let [ranges, affinity, to_nodes] = declared.map(|capability| cx.declares(capability));
    let plan = load_balancer("web").port(80).with(move |spec| {
        spec.load_balancer_source_ranges = ranges.then(|| vec![STAYS.to_owned()]);
        spec.session_affinity = affinity.then(|| "ClientIP".to_owned());
        spec.external_traffic_policy = to_nodes.then(|| "Local".to_owned());
    });
    let web = cx.service(plan).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    let held = web.balancer().read(ReadSource::Origin).await?;
    let (had, rest) = (rest_of(&held), held.load_balancers.first().map(Observed::observed));
    let node_port = web.spec().await?.ports.unwrap_or_default().into_iter().find_map(|port| port.node_port);
    let ports = json!([{"name": "alt", "port": 8080, "protocol": "TCP", "nodePort": node_port}]);
    web.patch(&json!({"spec": {"ports": ports}})).await?;
    let whole = no_other_than(&before, "has the new port, and all else as before", move |held| {
        matches!(held.load_balancers.as_slice(), [lb] if ports_of(lb) == BTreeSet::from([8080]))
            && rest_of(held) == had
    });
    let whole = whole.expecting(format!("port 8080, and all else as in {}", rest.unwrap_or_default()));
    web.balancer().becomes(whole).within(cx.limits().load_balancer()).await
}

/// The parts of a load balancer that an edit of the ports must not change.
#[derive(PartialEq)]
struct Rest {
    admitted: Option<BTreeSet<String>>,
    keeps_clients: Vec<bool>,
    health_checks: Vec<Option<HealthCheck>>,
}

fn rest_of(held: &Inventory) -> Rest {
    Rest {
        admitted: admitted(held),
        keeps_clients: held.load_balancers.iter().map(|lb| lb.session_affinity == "ClientIP").collect(),
        health_checks: held.load_balancers.iter().map(|lb| lb.health_check.clone()).collect(),
    }
}

/// Uses a temporary failure. After a permanent one, the CCM would do everything again, which would hide a
/// forgotten part.
async fn removes_a_port_at_the_second_try(cx: &CheckCx) -> Verdict {
    let (answered, fails) = (Effect::Latency { ms: 0 }, Effect::Status { status: 500, retry_after_s: None });
    let (first, second) = ([fails.clone()], [answered, fails]);
    try_join(
        removes_a_port(cx, "first", "though its first call failed", &first),
        removes_a_port(cx, "second", "though its second call failed, if it made one", &second),
    )
    .await
    .map(drop)
}

/// Removes one of two ports of a Service with this name. The calls for that meet these effects, each once.
async fn removes_a_port(cx: &CheckCx, name: &str, when: &'static str, effects: &[Effect]) -> Verdict {
    let web = cx.service(load_balancer(name).port(80).port(443)).await?;
    let before = web.gets_published().await?;
    web.rests().await?;
    web.cloud().meets(when, effects).to(EDIT_CALLS).times(1).must_be_met().await?;
    keeps_only(&web, 443).await?;
    let limit = cx.limits().service_after(2);
    web.balancer().becomes(serves_443_alone(&before)).within(limit).when(when).await
}

/// Whether the cloud admits a range.
fn admits(held: &Inventory, range: &str) -> bool {
    let on_balancers = held.load_balancers.iter().any(|lb| lb.source_ranges.iter().any(|one| one == range));
    let names =
        |spec: &Value| spec["source_ranges"].as_array().is_some_and(|all| all.iter().any(|one| one == range));
    on_balancers || held.auxiliaries.iter().any(|aux| names(&aux.spec))
}

const STAYS: &str = "192.0.2.0/24";
const GOES: &str = "198.51.100.0/24";

async fn removes_a_range(cx: &CheckCx) -> Verdict {
    let both = || Some(vec![STAYS.to_owned(), GOES.to_owned()]);
    let web =
        cx.service(load_balancer("web").port(80).with(|s| s.load_balancer_source_ranges = both())).await?;
    let before = web.gets_published().await?;
    let of_both =
        no_other_than(&before, "lets both ranges in", |held| admits(held, STAYS) && admits(held, GOES));
    web.balancer().becomes(of_both).await?;
    web.rests().await?;
    web.patch(&json!({"spec": {"loadBalancerSourceRanges": [STAYS]}})).await?;
    let of_one = no_other_than(&before, "lets in the range that is left and no other", |held| {
        admits(held, STAYS) && !admits(held, GOES)
    });
    web.balancer().becomes(of_one).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_let_in_by_the_balancer_or_its_firewall() {
        let lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "addresses": [],
                        "state": "active", "source_ranges": [STAYS]});
        let firewall = json!({"id": "f", "kind": "firewall", "name": "f", "spec": {"source_ranges": [GOES]}});
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [firewall], "routes": []});
        let held: Inventory = serde_json::from_value(all).expect("an inventory");
        assert!(admits(&held, STAYS) && admits(&held, GOES) && !admits(&held, "0.0.0.0/0"));
    }
}
