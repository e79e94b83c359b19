//! Replays recorded exchanges: the parts that this crate decides alone are compared with the real server's answers.
//!
//! The existence of namespaces, the deletion of Pods and namespaces, lists, watches, reviews and
//! authorization belong to the API server crate, and are replayed there.

use std::collections::BTreeMap;
use std::path::Path;

use embedded_objects::{discovery, wire};
use serde_json::Value;

use crate::server::{NOW, Server, Target, UID};

fn scenario(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/apiserver-transcripts");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("the scenario is there");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    file["exchanges"].as_array().expect("it has exchanges").clone()
}

/// Replaces values that differ from run to run by the recordings' placeholders.
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

/// Replays a scenario without the listed exchanges, and compares every answer and the normal form of its bytes.
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
        let target = Target::parse(path).unwrap_or_else(|| panic!("{name} {at}: {path} is not a resource"));
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
    // The last exchange is about a missing namespace.
    check("service-invalid", &[10]);
}

#[test]
fn a_load_balancer_lives_and_dies() {
    check("service-lb-lifecycle", &[]);
}

#[test]
fn nodes_are_created() {
    // The ninth has a content type that the server rejects.
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
    // Bindings, lists and graceful deletion belong to the API server crate.
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
    // Scale belongs to the API server crate.
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
fn discovery_describes_kinds_as_the_real_server_does() {
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
        assert_eq!(*ours, exchange["response"]["body"], "{path}");
    }
    for exchange in scenario("discovery-aggregated") {
        let ours = match exchange["request"]["path"].as_str() {
            Some("/api") => discovery::aggregated_core(),
            _ => discovery::aggregated_groups(&[]),
        };
        assert_eq!(exchange["response"]["contentType"], discovery::AGGREGATED);
        assert_eq!(ours, exchange["response"]["body"], "aggregated");
    }
}

/// The line of `discovery.txt` for a resource.
fn described(group_version: &str, resource: &Value) -> String {
    let text = |name: &str| resource[name].as_str().unwrap_or_default();
    let list = |name: &str| {
        let items = resource[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.collect::<Vec<_>>().join(",")
    };
    let place = match (text("group"), text("version")) {
        ("", "") => String::new(),
        ("", version) => format!("{version}:"),
        (group, version) => format!("{group}/{version}:"),
    };
    let singular = if text("singularName").is_empty() { "-" } else { text("singularName") };
    let scope = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
    let mut line = format!(
        "{group_version} {} {singular} {place}{} {scope} {}",
        text("name"),
        text("kind"),
        list("verbs")
    );
    for (name, value) in [
        ("short", list("shortNames")),
        ("category", list("categories")),
        ("hash", text("storageVersionHash").to_owned()),
    ] {
        if !value.is_empty() {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    line
}

#[test]
fn all_that_a_real_server_serves_is_served_and_nothing_else() {
    let expected: Vec<&str> =
        include_str!("discovery.txt").lines().filter(|line| !line.starts_with('#')).collect();
    let mut ours = Vec::new();
    let mut add = |group: &str, version: &str| {
        let document = discovery::resources(group, version, &[]).expect("it is served");
        let group_version = document["groupVersion"].as_str().expect("a version").to_owned();
        let resources = document["resources"].as_array().expect("resources");
        ours.extend(resources.iter().map(|resource| described(&group_version, resource)));
    };
    add("", "v1");
    for group in discovery::groups(&[])["groups"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            add(group["name"].as_str().expect("a name"), version["version"].as_str().expect("a version"));
        }
    }
    for (at, line) in expected.iter().enumerate() {
        assert_eq!(ours.get(at).map(String::as_str), Some(*line));
    }
    assert_eq!(ours.len(), expected.len());
    let resources = ours.iter().filter(|line| !line.split(' ').nth(1).is_some_and(|name| name.contains('/')));
    assert_eq!(resources.count(), 68);
}
