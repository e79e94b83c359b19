//! Watches: nothing is lost, nothing is kept for clients that do not read, and the history is limited.

use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::store::Keep;
use embedded_apiserver::{Config, User};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::client::Cluster;

/// Reads the lines of a watch until `enough` returns true or the watch ends.
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
async fn a_watch_from_a_compacted_revision_gets_an_error() {
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
    // More than the connection's own buffers take, so that the server has to wait.
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

/// A client of a service account with all rights.
async fn account(cluster: &Cluster) -> kube::Client {
    let binding = json!({
        "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let bound = cluster.ask("POST", path, Some(binding)).await;
    assert_eq!(bound.status, 201, "{}", bound.text);
    cluster.server.client(User::service_account("default", "default", ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_expires_on_order_and_a_list_in_pages_breaks_off_once() {
    use kube::runtime::watcher;
    let cluster = Cluster::start().await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(account(&cluster).await, "default");
    let mut events = std::pin::pin!(watcher(maps.clone(), watcher::Config::default().page_size(500)));
    // Reads until an object with this name is seen; returns what was seen on the way.
    async fn until<S>(events: &mut S, wanted: &str) -> Vec<String>
    where
        S: futures::Stream<Item = watcher::Result<watcher::Event<k8s_openapi::api::core::v1::ConfigMap>>>
            + Unpin,
    {
        let mut seen = Vec::new();
        loop {
            let next = tokio::time::timeout(Duration::from_secs(20), events.next()).await;
            match next.expect("an event in time").expect("the stream continues") {
                Ok(watcher::Event::Init) => seen.push("list".to_owned()),
                Ok(watcher::Event::InitApply(map) | watcher::Event::Apply(map)) => {
                    let name = map.metadata.name.unwrap_or_default();
                    seen.push(name.clone());
                    if name == wanted {
                        return seen;
                    }
                }
                Ok(_) => {}
                Err(error) => seen.push(if error.to_string().contains("410") {
                    "410".into()
                } else {
                    error.to_string()
                }),
            }
        }
    }
    cluster.ask("POST", MAPS, Some(map("a", "0"))).await;
    until(&mut events, "kube-root-ca.crt").await;
    cluster.ask("POST", MAPS, Some(map("b", "0"))).await;
    assert_eq!(until(&mut events, "b").await, ["b"]);
    cluster.server.interrupt_watches();
    cluster.ask("POST", MAPS, Some(map("c", "0"))).await;
    let nothing = tokio::time::timeout(Duration::from_millis(500), events.next()).await;
    assert!(nothing.is_err(), "a watch continues although it was interrupted: {nothing:?}");
    cluster.server.expire_watches();
    let seen = until(&mut events, "c").await;
    assert_eq!(seen.iter().filter(|one| *one == "list").count(), 2, "the first list breaks off: {seen:?}");
    // From here on everything is as before, and other users were never affected.
    cluster.ask("POST", MAPS, Some(map("d", "0"))).await;
    assert!(until(&mut events, "d").await.ends_with(&["d".to_owned()]));
    let token =
        maps.list(&kube::api::ListParams::default().limit(2)).await.expect("a page").metadata.continue_;
    let rest = kube::api::ListParams::default().limit(9).continue_token(&token.expect("a token"));
    assert_eq!(maps.list(&rest).await.expect("the rest").items.len(), 3);
}
