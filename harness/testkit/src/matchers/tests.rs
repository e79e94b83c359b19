//! Each matcher on literals, both ways.

use super::*;
use harness_clouds::{
    Auxiliary, Frontend, Instance, InstanceState, Inventory, LbAddress, LbState, LoadBalancer,
};
use harness_core::probe::{Matcher, Observation};
use harness_session::k8s::{F_LB, L_ZONE};
use k8s_openapi::api::core::v1::{Node, Service};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn balancer(id: &str, owner: &str) -> LoadBalancer {
    LoadBalancer {
        id: id.into(),
        name: format!("name-of-{id}"),
        owner: owner.into(),
        frontends: Vec::new(),
        backends: Vec::new(),
        health_check: None,
        source_ranges: Vec::new(),
        session_affinity: "None".into(),
        addresses: vec![LbAddress { ip: Some("203.0.113.1".parse().expect("an address")), hostname: None }],
        state: LbState::Active,
        details: json!(null),
    }
}

pub(crate) fn auxiliary(id: &str, owner: &str) -> Auxiliary {
    Auxiliary {
        id: id.into(),
        kind: "firewall".into(),
        name: format!("name-of-{id}"),
        owner: owner.into(),
        load_balancer: None,
        spec: json!({}),
    }
}

fn held(load_balancers: Vec<LoadBalancer>) -> Inventory {
    Inventory { load_balancers, ..Inventory::default() }
}

fn node(value: serde_json::Value) -> Option<Arc<Node>> {
    Some(Arc::new(serde_json::from_value(value).expect("a Node")))
}

fn service(value: serde_json::Value) -> Option<Arc<Service>> {
    Some(Arc::new(serde_json::from_value(value).expect("a Service")))
}

#[track_caller]
fn yes<O: 'static, T: 'static>(matcher: &Matcher<O, T>, seen: &O) {
    assert!(matches!(matcher.matches(seen), Observation::Matched(_)), "not: {}", matcher.expected());
}

#[track_caller]
fn no<O: 'static, T: 'static>(matcher: &Matcher<O, T>, seen: &O) {
    assert!(
        matches!(matcher.matches(seen), Observation::Pending(_)),
        "not just not yet: {}",
        matcher.expected()
    );
}

#[track_caller]
fn never<O: 'static, T: 'static>(matcher: &Matcher<O, T>, seen: &O, why: &str) {
    assert!(
        matches!(matcher.matches(seen), Observation::Impossible(said) if said == why),
        "{}",
        matcher.expected()
    );
}

#[test]
fn one_active_balancer() {
    let lb = balancer("a", "u");
    yes(&one_active(), &held(vec![lb.clone()]));
    no(&one_active(), &held(vec![]));
    no(&one_active(), &held(vec![LoadBalancer { addresses: vec![], ..lb.clone() }]));
    no(&one_active(), &held(vec![LoadBalancer { state: LbState::Provisioning, ..lb.clone() }]));
    never(&one_active(), &held(vec![lb.clone(), balancer("b", "u")]), "more than one");
    yes(&at_least_one(), &held(vec![LoadBalancer { state: LbState::Provisioning, ..lb.clone() }]));
    no(&at_least_one(), &held(vec![]));
    let is_a = one_balancer("is a", |lb| lb.id == "a");
    yes(&is_a, &held(vec![lb.clone()]));
    no(&is_a, &held(vec![balancer("b", "u")]));
    no(&is_a, &held(vec![lb.clone(), balancer("b", "u")]));
    no(&is_a, &held(vec![]));
}

#[test]
fn a_balancer_targets_a_machine_by_its_id_or_by_an_address() {
    let machine = Instance {
        addresses: vec![harness_clouds::Address { kind: "InternalIP".into(), address: "100.64.0.1".into() }],
        ..instance()
    };
    let with = |backend: &str| LoadBalancer { backends: vec![backend.to_owned()], ..balancer("a", "u") };
    assert!(targets(&with("i-1"), &machine) && targets(&with("100.64.0.1"), &machine));
    assert!(!targets(&with("i-2"), &machine) && !targets(&with("100.64.0.2"), &machine));
    assert!(!targets(&balancer("a", "u"), &machine));
}

#[test]
fn a_balancer_whose_ports_have_backends_of_their_own_targets_what_is_behind_each() {
    let machine = instance();
    let with = |ports: &[&str]| {
        let port = |own: &&str| Frontend {
            backends: Some(vec![(*own).to_owned()]),
            ..Frontend::new(80, "TCP", 30080)
        };
        let all = ports.iter().map(|own| (*own).to_owned()).collect();
        LoadBalancer { frontends: ports.iter().map(port).collect(), backends: all, ..balancer("a", "u") }
    };
    let seen = |ports: &[&str]| (targets(&with(ports), &machine), reaches(&with(ports), &machine));
    assert_eq!(seen(&["i-1", "i-1"]), (true, true));
    assert_eq!(seen(&["i-1", "i-2"]), (false, true), "behind one of two ports it is neither in nor out");
    assert_eq!(seen(&["i-2", "i-2"]), (false, false));
}

#[test]
fn the_same_balancer() {
    let lb = balancer("a", "u");
    let same = no_other_than(&lb, "has a backend", |held| !held.load_balancers[0].backends.is_empty());
    yes(&same, &held(vec![LoadBalancer { backends: vec!["i".into()], ..lb.clone() }]));
    no(&same, &held(vec![lb.clone()]));
    no(&same, &held(vec![]));
    never(&same, &held(vec![balancer("b", "u")]), "it was replaced");
    never(&same, &held(vec![LoadBalancer { addresses: vec![], ..lb }]), "its address changed");
}

#[test]
fn nothing_of_a_service() {
    yes(&nothing_left(), &held(vec![]));
    no(&nothing_left(), &held(vec![balancer("a", "u")]));
    no(&nothing_left(), &Inventory { auxiliaries: vec![auxiliary("f", "u")], ..Inventory::default() });
}

#[test]
fn a_services_finalizer() {
    let with = service(json!({"metadata": {"finalizers": [F_LB]}}));
    let going =
        service(json!({"metadata": {"finalizers": [F_LB], "deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let other = service(json!({"metadata": {"finalizers": ["example.com/other"]}}));
    for kept in [&with, &going] {
        yes(&keeps_finalizer(), kept);
        no(&lacks_finalizer(), kept);
    }
    for lost in [&other, &None] {
        no(&keeps_finalizer(), lost);
        no(&waits_to_be_deleted(), lost);
    }
    yes(&lacks_finalizer(), &other);
    no(&lacks_finalizer(), &None);
    yes(&waits_to_be_deleted(), &going);
    no(&waits_to_be_deleted(), &with);
}

#[test]
fn matchers_of_published_addresses() {
    let of = |ips: &[&str]| {
        let ingress: Vec<_> = ips.iter().map(|ip| json!({"ip": ip})).collect();
        service(json!({"status": {"loadBalancer": {"ingress": ingress}}}))
    };
    let lb = balancer("a", "u");
    yes(&publishes(&lb), &of(&["203.0.113.1"]));
    for other in [of(&[]), of(&["203.0.113.2"]), of(&["203.0.113.1", "203.0.113.2"]), None] {
        no(&publishes(&lb), &other);
    }
    no(&publishes(&LoadBalancer { addresses: vec![], ..lb.clone() }), &of(&[]));
    yes(&publishes_nothing(), &of(&[]));
    no(&publishes_nothing(), &of(&["203.0.113.1"]));
    no(&publishes_nothing(), &None);
}

#[test]
fn a_service_may_publish_some_of_its_balancers_addresses_in_any_order() {
    let of = |ingress: serde_json::Value| service(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
    let address = |ip: &str, hostname: Option<&str>| LbAddress {
        ip: Some(ip.parse().expect("an address")),
        hostname: hostname.map(str::to_owned),
    };
    let addresses = vec![address("203.0.113.1", Some("lb.example")), address("2001:db8::1", None)];
    let lb = publishes(&LoadBalancer { addresses, ..balancer("a", "u") });
    let (v4, v6, name) =
        (json!({"ip": "203.0.113.1"}), json!({"ip": "2001:db8::1"}), json!({"hostname": "lb.example"}));
    let both = json!({"ip": "203.0.113.1", "hostname": "lb.example"});
    for right in [json!([v4]), json!([v6, v4]), json!([name]), json!([both, v6])] {
        yes(&lb, &of(right));
    }
    let crossed = json!({"ip": "2001:db8::1", "hostname": "lb.example"});
    for wrong in [json!([v4, v4]), json!([v4, {"ip": "203.0.113.2"}]), json!([crossed]), json!([{}])] {
        no(&lb, &of(wrong));
    }
}

fn instance() -> Instance {
    Instance {
        id: "i-1".into(),
        name: "n".into(),
        provider_id: Some("p://i-1".into()),
        instance_type: "m1".into(),
        zone: "z".into(),
        region: String::new(),
        addresses: Vec::new(),
        labels: Default::default(),
        state: InstanceState::Running,
    }
}

fn with_labels(provider_id: &str, zone: &str) -> Option<Arc<Node>> {
    let labels = json!({
        L_ZONE: zone, "failure-domain.beta.kubernetes.io/zone": "z",
        "node.kubernetes.io/instance-type": "m1", "beta.kubernetes.io/instance-type": "m1",
    });
    node(json!({"metadata": {"name": "n", "labels": labels}, "spec": {"providerID": provider_id}}))
}

#[test]
fn an_initialised_node() {
    let taint = json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoExecute"}]);
    let fresh = || node(json!({"spec": {"taints": taint}}));
    let done = node(json!({"spec": {"taints": [{"key": "example.com/other", "effect": "NoSchedule"}]}}));
    yes(&initialised(), &done);
    no(&initialised(), &fresh());
    no(&initialised(), &None);
    yes(&untouched(), &fresh());
    let host = json!({"addresses": [{"type": "Hostname", "address": "n"}]});
    yes(&untouched(), &node(json!({"spec": {"taints": taint}, "status": host})));
    no(&untouched(), &done);
    no(&untouched(), &None);
    no(&untouched(), &node(json!({"spec": {"taints": taint, "providerID": "p://i-1"}})));
    for key in [L_ZONE, "node.kubernetes.io/instance-type"] {
        no(&untouched(), &node(json!({"metadata": {"labels": {key: "z"}}, "spec": {"taints": taint}})));
    }
    let ip = json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]});
    no(&untouched(), &node(json!({"spec": {"taints": taint}, "status": ip})));
}

#[test]
fn matchers_of_cloud_data_on_nodes() {
    let whole = initialised_as("is whole", &instance());
    assert!(!whole.expected().contains("region"), "{}", whole.expected());
    yes(&whole, &with_labels("p://i-1", "z"));
    no(&whole, &with_labels("", "z"));
    no(&whole, &with_labels("p://i-1", "other"));
    no(&whole, &None);
    let labels = || has_labels(expected_labels(&instance()));
    yes(&labels(), &with_labels("", "z"));
    no(&labels(), &with_labels("", "other"));
    no(&labels(), &None);
}

#[test]
fn a_nodes_addresses_in_order() {
    let of = |list: &[&str]| {
        let addresses: Vec<_> = list.iter().map(|a| json!({"type": "InternalIP", "address": a})).collect();
        node(json!({"status": {"addresses": addresses}}))
    };
    let pair = |address: &str| ("InternalIP".to_owned(), address.to_owned());
    let wanted = || has_addresses(vec![pair("a"), pair("b")]);
    yes(&wanted(), &of(&["a", "b"]));
    for other in [of(&["b", "a"]), of(&["a"]), of(&["a", "b", "c"]), None] {
        no(&wanted(), &other);
    }
    let spelt = has_addresses(vec![pair("2001:db8:0:0:0:0:0:a")]);
    yes(&spelt, &of(&["2001:db8::a"]));
    no(&spelt, &of(&["2001:db8::b"]));
}
