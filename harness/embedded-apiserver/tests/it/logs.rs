//! `pods/log`: past lines, new lines, and the end of the stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use embedded_apiserver::{Container, Followed, LogLine, Logs, User};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use serde_json::json;
use tokio::sync::mpsc;

use crate::client::Cluster;

/// A Pod whose containers have no status yet.
const POD: &str = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
const PATH: &str = "/api/v1/namespaces/default/pods/p/log";

/// The output of containers, for as many followers as there are channels; the log of a container `c` has two lines.
#[derive(Default)]
pub(crate) struct Source {
    followers: Mutex<VecDeque<mpsc::UnboundedReceiver<String>>>,
}

fn line(text: &str) -> LogLine {
    LogLine { at: Timestamp::UNIX_EPOCH, text: text.to_owned() }
}

impl Source {
    /// The sender for the next follower; dropping it ends the run.
    pub(crate) fn next_follower(&self) -> mpsc::UnboundedSender<String> {
        let (lines, received) = mpsc::unbounded_channel();
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).push_back(received);
        lines
    }
}

impl Logs for Source {
    fn lines(&self, container: Container<'_>, previous: bool) -> Option<Vec<LogLine>> {
        (container.name == "c" && !previous).then(|| vec![line("one\n"), line("two\n")])
    }

    fn follow(&self, container: Container<'_>) -> Option<Followed> {
        let kept = self.lines(container, false)?;
        let coming = self.followers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        let coming = stream::unfold(coming, |mut coming| async move {
            let text = coming.recv().await?;
            Some((vec![line(&text)], coming))
        });
        Some(Followed { kept, coming: coming.boxed() })
    }
}

/// A server with a Pod `p` and the source of its log.
pub(crate) async fn with_pod(cluster: &Cluster) -> Arc<Source> {
    let source = Arc::new(Source::default());
    cluster.server.serve_logs(Arc::clone(&source) as Arc<dyn Logs>);
    let pod = serde_json::from_str(POD).expect("JSON");
    let made = cluster.ask("POST", "/api/v1/namespaces/default/pods", Some(pod)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    source
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_to_the_end_of_the_run() {
    let cluster = Cluster::start().await;
    let source = with_pod(&cluster).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.server.client(User::admin()));
    let lines = source.next_follower();
    let params = LogParams { follow: true, tail_lines: Some(1), ..LogParams::default() };
    let mut read = pods.log_stream("p", &params).await.expect("a stream").lines();
    assert_eq!(read.try_next().await.expect("read").as_deref(), Some("two"));
    lines.send("three\n".to_owned()).expect("it is read");
    assert_eq!(read.try_next().await.expect("read").as_deref(), Some("three"));
    drop(lines);
    assert_eq!(read.try_next().await.expect("read"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_has_the_requested_part() {
    let cluster = Cluster::start().await;
    let source = with_pod(&cluster).await;
    let ask = async |query: &str| cluster.ask("GET", &format!("{PATH}?{query}"), None).await;
    for (query, expected) in [
        ("", "one\ntwo\n"),
        ("tailLines=1", "two\n"),
        ("limitBytes=5", "one\nt"),
        ("timestamps=true&tailLines=1", "1970-01-01T00:00:00Z two\n"),
        ("sinceSeconds=10", ""),
        ("sinceTime=1969-12-31T00:00:00Z", "one\ntwo\n"),
        ("sinceTime=2026-01-01T00:00:00Z", ""),
    ] {
        let answer = ask(query).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, expected), "{query}");
        assert_eq!(answer.content_type, "text/plain; charset=utf-8", "{query}");
    }
    assert_eq!(ask("sinceTime=yesterday").await.status, 400);
    assert_eq!(ask("previous=true&follow=true").await.status, 400);
    let waits = ask("container=x").await;
    assert_eq!(
        (waits.status, waits.body()["message"].as_str()),
        (400, Some("container x is not valid for pod p"))
    );
    // A limit ends a stream that would otherwise continue.
    let lines = source.next_follower();
    lines.send("three\n".to_owned()).expect("it is read");
    assert_eq!(ask("follow=true&limitBytes=10").await.text, "one\ntwo\nth");
    // So does a server that stops.
    let _lines = source.next_follower();
    let following = cluster.admin.get(format!("{}{PATH}?follow=true", cluster.server.url()));
    let mut chunks = following.send().await.expect("an answer").bytes_stream();
    assert_eq!(chunks.next().await.expect("a chunk").expect("read"), "one\ntwo\n");
    cluster.server.shutdown().await;
    let rest: Vec<_> = chunks.try_collect().await.expect("the stream ends");
    assert!(rest.iter().all(|chunk| chunk.is_empty()), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_container_has_an_empty_log_once_it_runs() {
    let cluster = Cluster::start().await;
    with_pod(&cluster).await;
    let pod = json!({"metadata": {"name": "s"}, "spec": {"containers": [{"name": "none", "image": "i"}]}});
    assert_eq!(cluster.ask("POST", "/api/v1/namespaces/default/pods", Some(pod)).await.status, 201);
    let path = "/api/v1/namespaces/default/pods/s";
    let waits = cluster.ask("GET", &format!("{path}/log"), None).await;
    assert_eq!(
        waits.body()["message"],
        "container \"none\" in pod \"s\" is waiting to start: ContainerCreating"
    );
    let running = json!({"status": {"containerStatuses": [{
        "name": "none", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }]}});
    let answer = cluster
        .send("PATCH", &format!("{path}/status"), "application/merge-patch+json", running.to_string())
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    for query in ["", "?follow=true"] {
        let answer = cluster.ask("GET", &format!("{path}/log{query}"), None).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, ""));
    }
}
