//! Sequences of changes of load balancers, and the losses in them.

use super::judge::breaks;
use super::spec::ServiceVersion;
use super::timeline::{Lost, Timeline, Withdrawal};
use super::{Rule, Window};
use harness_clouds::{Entry, LbChange, LbParts};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// A run of one Service with one load balancer of two Nodes; times are seconds since its beginning.
struct Story {
    timeline: Timeline,
    began: Instant,
    parts: Value,
    seq: u64,
}

fn service(spec: &Value, published: bool, deleted: bool) -> ServiceVersion {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]},
        "status": {"loadBalancer": {"ingress": if published { json!([{"ip": "203.0.113.1"}]) } else { json!([]) }}},
    });
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    let object: Service = serde_json::from_value(object).expect("a Service");
    ServiceVersion::of(&object, false)
}

impl Story {
    /// Everything is in place at 0 s.
    fn new() -> Story {
        let lb = json!({
            "id": "lb-1", "name": "web", "owner": "u", "state": "active",
            "frontends": [{"port": 80, "protocol": "TCP", "node_port": 30080}],
            "backends": ["i-1", "i-2"], "addresses": [{"ip": "203.0.113.1"}],
            "health_check": {"protocol": "HTTP", "path": "/healthz", "port": 10256},
            "source_ranges": ["192.0.2.0/24"], "session_affinity": "ClientIP",
        });
        let firewall = json!({
            "id": "fw-1", "kind": "firewall", "name": "web", "owner": "u", "load_balancer": "lb-1",
            "spec": {"source_ranges": ["192.0.2.0/24"], "ports": [{"port": 80, "protocol": "TCP"}]},
        });
        let (timeline, began) = (Timeline::default(), Instant::now());
        let parts = json!({"load_balancers": [], "auxiliaries": []});
        let mut story = Story { timeline, began, parts, seq: 0 };
        for name in ["i-1", "i-2"] {
            story.node(0, name);
        }
        story.service(0, &json!({}), true);
        story.writes(0, |parts| {
            *parts = json!({"load_balancers": [lb.clone()], "auxiliaries": [firewall.clone()]})
        });
        story
    }

    fn at(&self, seconds: u64) -> Instant {
        self.began + Duration::from_secs(seconds)
    }

    fn node(&mut self, seconds: u64, machine: &str) {
        let at = self.at(seconds);
        self.timeline.node(machine, BTreeSet::from([machine.to_owned()]), at);
    }

    fn service(&mut self, seconds: u64, spec: &Value, published: bool) -> Option<Lost> {
        let at = self.at(seconds);
        self.timeline.service("u", "ns/web", service(spec, published, false), at)
    }

    /// One call to the cloud, by what it changes.
    fn writes(&mut self, seconds: u64, change: impl FnOnce(&mut Value)) {
        let parts = |value: &Value| -> LbParts { serde_json::from_value(value.clone()).expect("parts") };
        let before = parts(&self.parts);
        change(&mut self.parts);
        self.seq += 1;
        let mut entry: Entry = serde_json::from_value(json!({
            "seq": self.seq, "at_ms": seconds * 1000, "took_ms": 1, "peer": "127.0.0.1", "credential": "a",
            "op": "lb.update", "write": true, "resource": "lb-1", "owner": "u", "request": "PUT /lb",
            "outcome": {"kind": "answered", "status": 200},
        }))
        .expect("an entry");
        entry.change = Some(Box::new(LbChange { before, after: parts(&self.parts) }));
        let at = self.at(seconds);
        self.timeline.call(&entry, at);
    }

    fn sets(&mut self, seconds: u64, pointer: &str, value: Value) {
        let set = |parts: &mut Value| *parts.pointer_mut(pointer).expect("a field") = value;
        self.writes(seconds, set);
    }

    fn broken(&self) -> Vec<(u64, Rule)> {
        let breaks = breaks(&self.timeline, &Window::whole());
        breaks.iter().map(|broken| ((broken.at - self.began).as_secs(), broken.rule)).collect()
    }
}

const BACKENDS: &str = "/load_balancers/0/backends";

#[test]
fn a_backend_that_stays_must_not_be_missing() {
    let mut story = Story::new();
    story.sets(60, BACKENDS, json!([]));
    story.sets(61, BACKENDS, json!(["i-1", "i-2"]));
    assert_eq!(story.broken(), [(60, Rule::Backends), (60, Rule::Backends)]);
    let text = breaks(&story.timeline, &Window::whole())[0].to_string();
    assert!(
        text.contains("Service ns/web: load balancer lb-1 lost backend i-1 by #2 60.000s a: PUT /lb"),
        "{text}"
    );
}

#[test]
fn a_backend_whose_node_changed_or_that_stays_away_is_not_lost() {
    let mut story = Story::new();
    story.node(59, "i-2");
    story.sets(60, BACKENDS, json!(["i-1"]));
    story.sets(62, BACKENDS, json!(["i-1", "i-2"]));
    assert_eq!(story.broken(), [], "its Node changed");
    let mut story = Story::new();
    story.sets(60, BACKENDS, json!(["i-1"]));
    assert_eq!(story.broken(), [], "it did not come back");
    let mut story = Story::new();
    story.sets(10, BACKENDS, json!(["i-1"]));
    story.sets(11, BACKENDS, json!(["i-1", "i-2"]));
    assert_eq!(story.broken(), [], "its Node came a moment before");
    let since = Window { since: Some(story.at(5)), heard: Duration::ZERO, ..Window::whole() };
    assert_eq!(breaks(&story.timeline, &since).len(), 1, "unless the CCM was done with that");
}

#[test]
fn a_setting_keeps_its_value_unless_the_service_says_otherwise() {
    let mut story = Story::new();
    story.sets(60, "/load_balancers/0/session_affinity", json!("None"));
    story.sets(70, "/load_balancers/0/health_check", json!(null));
    assert_eq!(story.broken(), [(60, Rule::Settings), (70, Rule::Settings)]);
    let mut story = Story::new();
    story.service(58, &json!({"sessionAffinity": "None"}), true);
    story.sets(60, "/load_balancers/0/session_affinity", json!("None"));
    assert_eq!(story.broken(), [], "it was edited");
    let mut story = Story::new();
    // Someone else changes it, and the CCM corrects it.
    story.parts["load_balancers"][0]["source_ranges"] = json!(["0.0.0.0/0"]);
    story.sets(60, "/load_balancers/0/source_ranges", json!(["192.0.2.0/24"]));
    assert_eq!(story.broken(), [], "it was not the CCM's value");
}

#[test]
fn an_edit_may_take_several_steps_and_its_work_is_over_some_day() {
    let two = json!([{"port": 81, "nodePort": 30081}]);
    let port = |node_port: u16| json!([{"port": 81, "protocol": "TCP", "node_port": node_port}]);
    let mut story = Story::new();
    story.service(60, &json!({"ports": two}), true);
    story.sets(62, "/load_balancers/0/frontends", port(1));
    story.sets(90, "/load_balancers/0/frontends", port(30081));
    assert_eq!(story.broken(), [(90, Rule::Settings)], "the first step had lasted");
    let mut story = Story::new();
    story.service(60, &json!({"ports": two}), true);
    story.sets(62, "/load_balancers/0/frontends", port(1));
    story.sets(64, "/load_balancers/0/frontends", port(30081));
    assert_eq!(story.broken(), []);
}

#[test]
fn a_firewall_is_never_empty_while_it_is_needed() {
    let mut story = Story::new();
    story.sets(60, "/auxiliaries/0/spec/ports", json!([]));
    assert_eq!(story.broken(), [(60, Rule::Firewall)]);
    let mut story = Story::new();
    story.sets(60, "/auxiliaries", json!([]));
    // Its source ranges are a setting too.
    assert_eq!(story.broken(), [(60, Rule::Settings), (60, Rule::Firewall)]);
    // The harness learns of the deletion a moment later than the CCM: until then nothing is certain.
    let mut story = Story::new();
    story.sets(60, "/auxiliaries", json!([]));
    let early = breaks(&story.timeline, &Window::whole());
    assert!(!early.is_empty() && early.iter().all(|broken| broken.certain_from > story.at(61)));
    let at = story.at(61);
    story.timeline.service("u", "ns/web", service(&json!({}), true, true), at);
    assert_eq!(story.broken(), []);
}

#[test]
fn an_address_stays_in_the_status() {
    let mut story = Story::new();
    let lost = story.service(60, &json!({}), false).expect("one is lost");
    story.timeline.withdrawals.push(Withdrawal { owner: "u".to_owned(), balancer: "lb-1".to_owned(), lost });
    assert_eq!(story.broken(), [(60, Rule::Addresses)]);
    let text = breaks(&story.timeline, &Window::whole())[0].to_string();
    assert_eq!(
        text,
        "Service ns/web: 203.0.113.1 was withdrawn from the status while load balancer lb-1 has it"
    );
    story.service(61, &json!({"type": "ClusterIP"}), false);
    assert_eq!(story.broken(), [], "it was on its way to another type");
}
