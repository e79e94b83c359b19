//! Watches: nothing is lost, nothing is kept for those who do not read, and the past ends somewhere.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::store::Keep;
use embedded_apiserver::{Config, User};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::client::Cluster;

/// Reads the lines of a watch until `enough` says so or it ends.
async fn read(cluster: &Cluster, path: &str, mut enough: impl FnMut(&[Value]) -> bool) -> Vec<Value> {
    let request = cluster.admin.get(format!("{}{path}", cluster.server.url()));
    let mut chunks = request.send().await.expect("an answer").bytes_stream();
    let (mut buffer, mut events) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { break };
        buffer.extend_from_slice(&chunk);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            events.push(serde_json::from_slice(&line).expect("an event"));
        }
        if enough(&events) {
            break;
        }
    }
    events
}

fn map(name: &str, data: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"at": data}}, "data": {"k": data}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_watchers_lose_nothing() {
    const WATCHERS: usize = 100;
    const UPDATES: u64 = 300;
    let cluster = Arc::new(Cluster::start().await);
    cluster.ask("POST", MAPS, Some(map("a", "0"))).await;
    let from = cluster.server.revision();
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let cluster = Arc::clone(&cluster);
            tokio::spawn(async move {
                let path = format!("{MAPS}?watch=1&resourceVersion={from}");
                let count = usize::try_from(UPDATES).expect("it fits");
                read(&cluster, &path, |events| events.len() >= count).await
            })
        })
        .collect();
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::default_namespaced(cluster.server.client(User::admin()));
    for at in 1..=UPDATES {
        let patch = kube::api::Patch::Merge(json!({"data": {"k": at.to_string()}}));
        maps.patch("a", &kube::api::PatchParams::default(), &patch).await.expect("patched");
    }
    for watcher in watchers {
        let events = watcher.await.expect("a watcher");
        let values: Vec<u64> = events
            .iter()
            .map(|event| {
                event["object"]["data"]["k"].as_str().and_then(|k| k.parse().ok()).expect("a number")
            })
            .collect();
        assert_eq!(values, (1..=UPDATES).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_a_forgotten_past_is_told_so() {
    let config = Config { keep: Keep { events: 4, bytes: 1 << 20 }, ..Config::default() };
    let cluster = Cluster::with(config).await;
    for at in 0..10 {
        assert_eq!(cluster.ask("POST", MAPS, Some(map(&format!("m{at}"), "0"))).await.status, 201);
    }
    let events = read(&cluster, &format!("{MAPS}?watch=1&resourceVersion=2"), |_| false).await;
    let oldest = cluster.server.revision() - 4;
    assert_eq!(
        events,
        [json!({"type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
            "reason": "Expired", "message": format!("too old resource version: 2 ({oldest})"),
        }})]
    );
    let exact = format!("{MAPS}?resourceVersion=2&resourceVersionMatch=Exact");
    assert_eq!(cluster.ask("GET", &exact, None).await.status, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_reading_is_dropped_in_the_end() {
    let config = Config { keep: Keep { events: 8, bytes: 64 << 20 }, ..Config::default() };
    let cluster = Cluster::with(config).await;
    let from = cluster.server.revision();
    let request = cluster.admin.get(format!("{}{MAPS}?watch=1&resourceVersion={from}", cluster.server.url()));
    let mut chunks = request.send().await.expect("an answer").bytes_stream();
    // More than the connection's own buffers take, so that the server has to hold back.
    let large = "x".repeat(500_000);
    for at in 0..60 {
        let made = cluster.ask("POST", MAPS, Some(map(&format!("m{at}"), "0").merged("data", &large))).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let drained = async { while let Some(Ok(_)) = chunks.next().await {} };
    tokio::time::timeout(Duration::from_secs(30), drained).await.expect("the server ends the watch");
}

trait Merged {
    fn merged(self, part: &str, value: &str) -> Self;
}

impl Merged for Value {
    fn merged(mut self, part: &str, value: &str) -> Self {
        self[part]["large"] = value.into();
        self
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_come_into_a_selection_and_leave_it() {
    let cluster = Cluster::start().await;
    let from = cluster.server.revision();
    cluster.ask("POST", MAPS, Some(map("a", "1"))).await;
    for value in ["2", "1", "3"] {
        let patch = json!({"metadata": {"labels": {"at": value}}, "data": {"k": value}}).to_string();
        cluster.send("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", patch).await;
    }
    cluster.ask("DELETE", &format!("{MAPS}/a"), None).await;
    let path = format!("{MAPS}?watch=1&resourceVersion={from}&labelSelector=at%3D1&timeoutSeconds=1");
    let events = read(&cluster, &path, |_| false).await;
    let seen: Vec<(&str, &str, u64)> = events
        .iter()
        .map(|event| {
            let version = event["object"]["metadata"]["resourceVersion"].as_str().expect("a version");
            let revision = version.parse::<u64>().expect("a number") - from;
            (
                event["type"].as_str().expect("a type"),
                event["object"]["data"]["k"].as_str().expect("data"),
                revision,
            )
        })
        .collect();
    assert_eq!(seen, [("ADDED", "1", 1), ("DELETED", "1", 2), ("ADDED", "1", 3), ("DELETED", "1", 4)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_one_moment() {
    let cluster = Cluster::start().await;
    for name in ["a", "b", "c", "d"] {
        cluster.ask("POST", MAPS, Some(map(name, "0"))).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().expect("items").iter();
        items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
    };
    let first = cluster.ask("GET", &format!("{MAPS}?limit=2"), None).await.body();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3, "kube-root-ca.crt is the last of five");
    cluster.ask("DELETE", &format!("{MAPS}/c"), None).await;
    cluster.ask("POST", MAPS, Some(map("bb", "0"))).await;
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let rest = cluster.ask("GET", &format!("{MAPS}?limit=9&continue={token}"), None).await.body();
    assert_eq!(names(&rest), ["c", "d", "kube-root-ca.crt"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let future = cluster.ask("GET", &format!("{MAPS}?resourceVersion=999999"), None).await;
    assert_eq!(future.status, 504, "{}", future.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_ends_its_watches() {
    let cluster = Cluster::start().await;
    let request = cluster.admin.get(format!("{}{MAPS}?watch=1", cluster.server.url()));
    let mut chunks = request.send().await.expect("an answer").bytes_stream();
    let stop = cluster.server.shutdown();
    let drained = async { while let Some(Ok(_)) = chunks.next().await {} };
    let both = async { tokio::join!(stop, drained) };
    tokio::time::timeout(Duration::from_secs(20), both).await.expect("it stops");
}
