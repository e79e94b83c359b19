//! Replays of recorded exchanges: what of them the crate alone decides is compared with what the real server answered.
//!
//! Namespaces' existence, deletion of Pods and namespaces, lists, watches, reviews and who may do what are the
//! server's around it, and are replayed there.

use std::collections::BTreeMap;
use std::path::Path;

use embedded_semantics::{discovery, wire};
use serde_json::Value;

use crate::server::{NOW, Server, Target, UID};

fn scenario(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/apiserver-transcripts");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("the scenario is there");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    file["exchanges"].as_array().expect("it has exchanges").clone()
}

/// Puts the recordings' placeholders where values differ from run to run.
fn normal(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "managedFields");
            Value::Object(kept.map(|(name, member)| (name.clone(), normal(member, name))).collect())
        }
        Value::Array(items) => items.iter().map(|item| normal(item, key)).collect(),
        Value::String(text) if text == UID => "<uid>".into(),
        Value::String(text) if text == NOW => "<time>".into(),
        Value::String(_) if ["renewTime", "acquireTime", "lastTransitionTime"].contains(&key) => {
            "<time>".into()
        }
        Value::String(_) if key == "resourceVersion" => "<rv>".into(),
        Value::String(text) if key.starts_with("clusterIP") && text.starts_with("10.96.") => "<ip>".into(),
        Value::Number(number) if key.ends_with("odePort") && number.as_u64() >= Some(30000) => {
            "<port>".into()
        }
        other => other.clone(),
    }
}

fn expand(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// Replays a scenario without the exchanges named, and compares every answer and its bytes' normal form.
#[track_caller]
fn check(name: &str, not_ours: &[usize]) {
    let mut server = Server::new();
    let mut saved = BTreeMap::new();
    for (at, exchange) in scenario(name).iter().enumerate().filter(|(at, _)| !not_ours.contains(at)) {
        let (request, response) = (&exchange["request"], &exchange["response"]);
        let path = expand(request["path"].as_str().expect("a path"), &saved);
        let path = path.split('?').next().expect("split gives one part at least");
        let body = match &request["body"] {
            Value::String(text) => text.clone(),
            other => expand(&other.to_string(), &saved),
        };
        let target = Target::parse(path).unwrap_or_else(|| panic!("{name} {at}: {path} is no resource"));
        let content = request["headers"]["Content-Type"].as_str().unwrap_or_default();
        let answer = match request["method"].as_str().expect("a method") {
            "POST" => server.create(&target, &body).map(|object| (201, object)),
            "GET" => server.get(&target).map(|object| (200, object)),
            "PUT" => server.replace(&target, &body).map(|object| (200, object)),
            "PATCH" => server.change(&target, content, &body).map(|object| (200, object)),
            _ => server.delete(&target).map(|object| (200, object)),
        };
        let (code, object) = answer.unwrap_or_else(|status| (status.code, status.body()));
        for (key, field) in exchange["save"].as_object().into_iter().flatten() {
            let value = field.as_str().expect("a path").split('.').fold(&object, |at, step| &at[step]);
            saved.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        assert_eq!(code, response["status"], "{name} {at}: {path}");
        assert_eq!(normal(&object, ""), response["body"], "{name} {at}: {path}");
        let text = wire::json(&object);
        let read: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read, object, "{name} {at}: what is written reads the same");
        if let Ok(bytes) = wire::encode_protobuf(&object) {
            let (_, _, back) = wire::decode_protobuf(&bytes).expect("it was just written");
            assert_eq!(back, object, "{name} {at}: protobuf holds the same");
        }
    }
}

#[test]
fn services_get_their_defaults() {
    check("service-defaults", &[]);
}

#[test]
fn wrong_services_are_refused() {
    // The last asks for a namespace that is absent.
    check("service-invalid", &[10]);
}

#[test]
fn a_load_balancer_lives_and_dies() {
    check("service-lb-lifecycle", &[]);
}

#[test]
fn nodes_are_created() {
    // The ninth has a content type that the server refuses.
    check("node-create", &[8]);
}

#[test]
fn nodes_are_initialised_by_patches() {
    check("node-init-patches", &[]);
}

#[test]
fn leases_are_held() {
    check("lease-election", &[]);
}

#[test]
fn namespaces_are_created() {
    check("namespaces", &[1, 2, 3, 4, 5]);
}

#[test]
fn pods_are_created_and_keep_their_spec() {
    // Bindings, lists and graceful deletion are the server's.
    check("pods-binding", &[2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_bound_pod_stays_on_its_node() {
    let exchanges = scenario("pods-binding");
    let mut server = Server::new();
    let target = |path: &str| Target::parse(path).expect("a resource");
    let pods = "/api/v1/namespaces/kube-system/pods";
    let pod =
        server.create(&target(pods), &exchanges[1]["request"]["body"].to_string()).expect("a right Pod");
    let mut bound = pod;
    bound["spec"]["nodeName"] = "nodex".into();
    bound["status"]["conditions"] = serde_json::json!([{"type": "PodScheduled", "status": "True",
        "lastProbeTime": null, "lastTransitionTime": NOW}]);
    let key = ("pods".to_owned(), "kube-system".to_owned(), "p1".to_owned());
    server.objects.insert(key, bound);
    for (at, path) in [(4, format!("{pods}/p1/status")), (6, format!("{pods}/p1"))] {
        let request = &exchanges[at]["request"];
        let content = request["headers"]["Content-Type"].as_str().expect("a content type");
        let answer = server.change(&target(&path), content, &request["body"].to_string());
        let (code, body) = match answer {
            Ok(object) => (200, object),
            Err(status) => (status.code, status.body()),
        };
        assert_eq!(exchanges[at]["response"]["status"], code);
        assert_eq!(exchanges[at]["response"]["body"], normal(&body, ""), "exchange {at}");
    }
}

#[test]
fn workloads_get_their_defaults() {
    // Scale is a view of the server's.
    check("workloads", &[2, 3]);
}

#[test]
fn the_first_changes_of_a_watched_node() {
    check("watch-basic", &[5, 6, 7, 8]);
}

#[test]
fn listed_nodes_are_created() {
    check("list-select", &[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
}

#[test]
fn what_is_served_is_described_as_the_full_server_describes_it() {
    let ours: BTreeMap<&str, Option<Value>> = [
        ("/apis", Some(discovery::groups(&[]))),
        ("/api/v1", discovery::resources("", "v1", &[])),
        ("/apis/coordination.k8s.io/v1", discovery::resources("coordination.k8s.io", "v1", &[])),
        ("/apis/apps/v1", discovery::resources("apps", "v1", &[])),
        ("/apis/discovery.k8s.io/v1", discovery::resources("discovery.k8s.io", "v1", &[])),
    ]
    .into();
    for exchange in scenario("discovery") {
        let path = exchange["request"]["path"].as_str().expect("a path").to_owned();
        let Some(Some(ours)) = ours.get(path.as_str()) else { continue };
        part_of(ours, &exchange["response"]["body"], &path);
    }
    for exchange in scenario("discovery-aggregated") {
        let ours = match exchange["request"]["path"].as_str() {
            Some("/api") => discovery::aggregated_core(),
            _ => discovery::aggregated_groups(&[]),
        };
        assert_eq!(exchange["response"]["contentType"], discovery::AGGREGATED);
        part_of(&ours, &exchange["response"]["body"], "aggregated");
    }
}

/// Lists may be shorter than the full server's, in its order; everything else is the same.
#[track_caller]
fn part_of(ours: &Value, full: &Value, path: &str) {
    match (ours, full) {
        (Value::Object(ours), Value::Object(full)) => {
            assert!(ours.keys().eq(full.keys()), "{path}: {ours:?} against {full:?}");
            for (name, member) in ours {
                part_of(member, &full[name], &format!("{path}.{name}"));
            }
        }
        (Value::Array(ours), Value::Array(full)) if ours.first().is_some_and(Value::is_object) => {
            let id = |item: &Value| {
                ["name", "groupVersion", "resource", "subresource", "version"]
                    .iter()
                    .find_map(|key| item.get(key).or_else(|| item["metadata"].get(key)).cloned())
            };
            let mut rest = full.iter();
            for item in ours {
                let same = rest.find(|known| id(known) == id(item));
                let same =
                    same.unwrap_or_else(|| panic!("{path}: {item} is not there, or not in this order"));
                part_of(item, same, path);
            }
        }
        (ours, full) => assert_eq!(ours, full, "{path}"),
    }
}
