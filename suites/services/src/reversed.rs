//! Edits in the reverse direction: what is added exists, and a lifted restriction no longer applies (contract
//! SVC-UPD-01).

use super::edits::ports_of;
use super::needs::{LB, LB_TO_NODES, RANGES};
use super::update::{RANGE, restricted};
use super::variants::admitted;
use harness_testkit::prelude::*;
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use serde_json::json;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-UPD-01.port-added", |cx| Box::pin(adds_a_port(cx)))
        .by_calls()
        .without_machines()
        .needs(LB),
    Check::of("SVC-UPD-01.source-ranges-lifted", |cx| Box::pin(lifts_the_ranges(cx)))
        .by_calls()
        .without_machines()
        .needs(RANGES),
    Check::of("SVC-UPD-01.affinity-off", |cx| Box::pin(ends_the_affinity(cx)))
        .by_calls()
        .without_machines()
        .needs(&[Capability::LoadBalancer, Capability::Affinity]),
    Check::of("SVC-UPD-01.traffic-policy-back", |cx| Box::pin(comes_back_to_policy_cluster(cx)))
        .by_calls()
        .without_machines()
        .needs(LB_TO_NODES),
];

async fn adds_a_port(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80)).await?.provisioned().await?;
    web.rests().await?;
    let mut ports = web.spec().await?.ports.unwrap_or_default();
    let (name, protocol) = (Some("p443".to_owned()), Some("TCP".to_owned()));
    ports.push(ServicePort { name, port: 443, protocol, ..ServicePort::default() });
    web.patch(&json!({"spec": {"ports": ports}})).await?;
    let both = one_balancer("has the port that was added", |lb| ports_of(lb) == BTreeSet::from([80, 443]));
    web.balancer().becomes(both.expecting("ports 80 and 443")).await
}

/// Matches a load balancer that admits all clients.
fn open() -> Matcher<Inventory> {
    holds("admits everybody", |held: &Inventory| held.load_balancers.len() == 1 && admitted(held).is_none())
        .expecting("one load balancer with no range, or 0.0.0.0/0")
}

async fn lifts_the_ranges(cx: &CheckCx) -> Verdict {
    let plan = load_balancer("web").port(80);
    let plan = plan.with(|s| s.load_balancer_source_ranges = Some(vec![RANGE.to_owned()]));
    let web = cx.service(plan).await?.provisioned().await?;
    let none = ServiceSpec::default();
    let closed = holds("is restricted", move |held: &Inventory| restricted(held, &none));
    web.balancer().becomes(closed.expecting(format!("source ranges [{RANGE}]"))).await?;
    web.rests().await?;
    web.patch(&json!({"spec": {"loadBalancerSourceRanges": null}})).await?;
    web.balancer().becomes(open()).when("once its source ranges are lifted").await
}

async fn ends_the_affinity(cx: &CheckCx) -> Verdict {
    let sticky = load_balancer("web").port(80).with(|s| s.session_affinity = Some("ClientIP".to_owned()));
    let web = cx.service(sticky).await?.provisioned().await?;
    let keeps = |lb: &LoadBalancer| lb.session_affinity == "ClientIP";
    web.balancer()
        .becomes(one_balancer("keeps clients", keeps).expecting("session affinity ClientIP"))
        .await?;
    web.rests().await?;
    web.patch(&json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}})).await?;
    let free = one_balancer("keeps no clients", move |lb| !keeps(lb));
    web.balancer().becomes(free.expecting("no session affinity")).await
}

async fn comes_back_to_policy_cluster(cx: &CheckCx) -> Verdict {
    let local = load_balancer("web").port(80).with(|s| s.external_traffic_policy = Some("Local".to_owned()));
    let web = cx.service(local).await?.provisioned().await?;
    web.rests().await?;
    // Whether health checks use this port at all is a claim of its own (SVC-CREATE-08).
    let old = web.spec().await?.health_check_node_port.unwrap_or_default();
    web.patch(&json!({"spec": {"externalTrafficPolicy": "Cluster"}})).await?;
    web.balancer().becomes(asks_elsewhere(old)).when("once its traffic policy is Cluster").await
}

/// Matches a load balancer whose health checks no longer use the port of policy Local. Nothing listens there
/// any more, so a health check on that port would find no Node healthy.
fn asks_elsewhere(old: i32) -> Matcher<Inventory> {
    one_balancer("asks no port that is given back", move |lb| {
        lb.health_check.as_ref().is_none_or(|check| i32::from(check.port) != old)
    })
    .expecting(format!("no health check, or one on another port than {old}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::Value;

    fn held(fields: &Value) -> Inventory {
        let mut lb = json!({"id": "a", "name": "a", "frontends": [], "backends": [], "addresses": [], "state": "active"});
        for (name, value) in fields.as_object().into_iter().flatten() {
            lb[name] = value.clone();
        }
        let all = json!({"instances": [], "load_balancers": [lb], "auxiliaries": [], "routes": []});
        serde_json::from_value(all).expect("an inventory")
    }

    #[test]
    fn a_load_balancer_is_open_and_asks_elsewhere() {
        assert_eq!(open().matches(&held(&json!({}))), Observation::Matched(()));
        assert_eq!(open().matches(&held(&json!({"source_ranges": ["0.0.0.0/0"]}))), Observation::Matched(()));
        assert_eq!(open().matches(&held(&json!({"source_ranges": [RANGE]}))), Observation::when(false));
        assert_eq!(open().matches(&Inventory::default()), Observation::when(false), "there has to be one");
        let on = |port: u16| {
            held(&json!({"health_check": {"protocol": "HTTP", "path": "/healthz", "port": port}}))
        };
        assert_eq!(asks_elsewhere(30_001).matches(&held(&json!({}))), Observation::Matched(()));
        assert_eq!(asks_elsewhere(30_001).matches(&on(10_256)), Observation::Matched(()));
        assert_eq!(asks_elsewhere(30_001).matches(&on(30_001)), Observation::when(false));
    }
}
