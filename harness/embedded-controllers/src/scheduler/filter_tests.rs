//! Tests the filters on small clusters written as JSON.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use embedded_runtime::selectors::Labels;

fn site(name: &str, node: Value, pods: &[Value]) -> Site {
    let mut node: Node = serde_json::from_value(node).expect("a Node");
    node.metadata.name = Some(name.to_owned());
    let status = node.status.get_or_insert_default();
    let capacity = status.allocatable.get_or_insert_default();
    capacity.entry("pods".to_owned()).or_insert_with(|| Quantity("110".to_owned()));
    node.labels_mut().insert("kubernetes.io/hostname".to_owned(), name.to_owned());
    let pods = pods.iter().map(|pod| Arc::new(serde_json::from_value(pod.clone()).expect("a Pod"))).collect();
    Site { node: Arc::new(node), pods }
}

fn sites(all: Vec<Site>) -> Sites {
    Sites { all, namespaces: HashMap::from([("d".to_owned(), Labels::new())]), resources: Resources::Counted }
}

fn pod(spec: Value) -> Pod {
    serde_json::from_value(pod_json(spec)).expect("a Pod")
}

fn pod_json(mut spec: Value) -> Value {
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{"name": "c"}]);
    }
    json!({"metadata": {"name": "p", "namespace": "d", "labels": {"app": "web"}}, "spec": spec})
}

fn together(kind: &str) -> Value {
    json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}})
}

#[track_caller]
fn check(spec: Value, all: Vec<Site>, expected: Result<&str, Vec<Vec<Reason>>>) {
    assert_eq!(choose(&pod(spec), &sites(all)), expected.map(str::to_owned));
}

#[test]
fn constraints_spread_pods_over_the_nodes_that_have_the_label() {
    let constraint = |key: &str, more: Value| {
        let mut constraint = json!({"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}});
        constraint.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
        json!({"topologySpreadConstraints": [constraint]})
    };
    let placed = || pod_json(json!({}));
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let node = |name: &str, count: usize| site(name, json!({}), &vec![placed(); count]);
    check(constraint(zone, json!({})), vec![node("a", 0)], Err(vec![vec![Reason::SpreadLabel]]));
    let soft = constraint(zone, json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    check(soft, vec![node("a", 0)], Ok("a"));
    check(constraint(host, json!({})), vec![node("a", 0)], Ok("a"));
    check(constraint(host, json!({})), vec![node("a", 1), node("b", 0)], Ok("b"));
    // With two domains wanted and one there, the other counts as empty.
    let wanted = constraint(host, json!({"minDomains": 2}));
    check(wanted, vec![node("a", 1)], Err(vec![vec![Reason::Spread]]));
    check(constraint(host, json!({})), vec![node("a", 1)], Ok("a"));
}

#[test]
fn a_claim_that_is_not_there_keeps_a_pod_pending() {
    let spec = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "state"}}]});
    check(spec, vec![site("a", json!({}), &[])], Err(vec![vec![Reason::Claim("state".to_owned())]]));
}

#[test]
fn taints_keep_pods_off_unless_tolerated() {
    let tainted =
        || site("a", json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}), &[]);
    let reason = Reason::Taint { key: "k".to_owned(), value: "v".to_owned() };
    check(json!({}), vec![tainted()], Err(vec![vec![reason]]));
    check(json!({"tolerations": [{"operator": "Exists"}]}), vec![tainted()], Ok("a"));
    check(json!({}), vec![tainted(), site("b", json!({}), &[])], Ok("b"));
}

#[test]
fn selectors_and_affinity_choose_nodes() {
    let labelled = || site("a", json!({"metadata": {"labels": {"zone": "z1"}}}), &[]);
    check(json!({"nodeSelector": {"zone": "z1"}}), vec![labelled()], Ok("a"));
    check(json!({"nodeSelector": {"zone": "z2"}}), vec![labelled()], Err(vec![vec![Reason::NodeAffinity]]));
    let named = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    }}}});
    check(named.clone(), vec![labelled()], Err(vec![vec![Reason::OtherNode]]));
    check(named, vec![labelled(), site("b", json!({}), &[])], Ok("b"));
}

#[test]
fn cordoned_nodes_and_taken_ports_refuse() {
    check(
        json!({}),
        vec![site("a", json!({"spec": {"unschedulable": true}}), &[])],
        Err(vec![vec![Reason::Unschedulable]]),
    );
    let port = json!({"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 10258}]}]});
    let taken = || site("a", json!({}), &[pod_json(port.clone())]);
    check(port.clone(), vec![taken()], Err(vec![vec![Reason::HostPorts]]));
    check(port.clone(), vec![taken(), site("b", json!({}), &[])], Ok("b"));
}

#[test]
fn requests_are_counted_against_what_is_left() {
    let request = |cpu: &str| json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
    let small =
        |pods: &[Value]| site("a", json!({"status": {"allocatable": {"cpu": "1", "pods": "2"}}}), pods);
    check(request("600m"), vec![small(&[])], Ok("a"));
    check(
        request("600m"),
        vec![small(&[pod_json(request("500m"))])],
        Err(vec![vec![Reason::Insufficient("cpu".to_owned())]]),
    );
    check(
        json!({}),
        vec![small(&[pod_json(json!({})), pod_json(json!({}))])],
        Err(vec![vec![Reason::TooManyPods]]),
    );
}

#[test]
fn pods_want_to_be_together_or_apart() {
    let full = || site("a", json!({}), &[pod_json(json!({}))]);
    let empty = || site("b", json!({}), &[]);
    check(
        json!({"affinity": together("podAntiAffinity")}),
        vec![full()],
        Err(vec![vec![Reason::PodAntiAffinity]]),
    );
    check(json!({"affinity": together("podAntiAffinity")}), vec![full(), empty()], Ok("b"));
    check(json!({"affinity": together("podAffinity")}), vec![empty(), full()], Ok("a"));
    check(json!({"affinity": together("podAffinity")}), vec![empty()], Ok("b"));
    let lonely = || site("a", json!({}), &[pod_json(json!({"affinity": together("podAntiAffinity")}))]);
    check(json!({}), vec![lonely()], Err(vec![vec![Reason::ExistingAntiAffinity]]));
}

#[test]
fn pods_spread_over_nodes() {
    let busy = site("a", json!({}), &[pod_json(json!({}))]);
    check(json!({}), vec![busy, site("b", json!({}), &[])], Ok("b"));
}

#[test]
fn a_node_that_says_nothing_of_its_room_takes_no_pod() {
    let bare = Site { node: Arc::new(Node::default()), pods: Vec::new() };
    check(json!({}), vec![bare], Err(vec![vec![Reason::TooManyPods]]));
}
