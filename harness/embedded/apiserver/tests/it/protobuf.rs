//! The encoding that components built on the Go framework speak.

use embedded_semantics::wire;
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::client::Cluster;

const NODES: &str = "/api/v1/nodes";

async fn get(cluster: &Cluster, path: &str) -> (String, Vec<u8>) {
    let request = cluster.admin.get(format!("{}{path}", cluster.server.url()));
    let answer = request.header("Accept", wire::PROTOBUF).send().await.expect("an answer");
    let content_type = answer.headers()["content-type"].to_str().expect("text").to_owned();
    (content_type, answer.bytes().await.expect("a body").to_vec())
}

fn decode(bytes: &[u8]) -> Value {
    wire::decode_protobuf(bytes).expect("protobuf").2
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_lists_and_refusals_come_as_protobuf() {
    let cluster = Cluster::start().await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}});
    let bytes = wire::encode_protobuf(&node).expect("protobuf");
    let made = cluster.send("POST", NODES, wire::PROTOBUF, bytes).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let plain = cluster.ask("GET", "/api/v1/nodes/n", None).await.body();
    let (content_type, bytes) = get(&cluster, "/api/v1/nodes/n").await;
    assert_eq!((content_type.as_str(), decode(&bytes)), (wire::PROTOBUF, plain.clone()));
    let (_, bytes) = get(&cluster, NODES).await;
    let list = decode(&bytes);
    assert_eq!(list["items"][0]["metadata"], plain["metadata"]);
    let (content_type, bytes) = get(&cluster, "/api/v1/nodes/absent").await;
    assert_eq!(content_type, wire::PROTOBUF);
    assert_eq!(decode(&bytes)["message"], "nodes \"absent\" not found");
    let wrong = cluster.send("POST", NODES, wire::PROTOBUF, "not protobuf").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_come_as_protobuf_frames() {
    let cluster = Cluster::start().await;
    let from = cluster.server.revision();
    for name in ["a", "b"] {
        cluster.ask("POST", NODES, Some(json!({"metadata": {"name": name}}))).await;
    }
    let path = format!("{}{NODES}?watch=1&resourceVersion={from}&timeoutSeconds=1", cluster.server.url());
    let request = cluster.admin.get(path).header("Accept", format!("{};stream=watch", wire::PROTOBUF));
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.headers()["content-type"], wire::PROTOBUF_WATCH);
    let mut bytes = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        bytes.extend_from_slice(&chunk);
    }
    let mut seen = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let (frame, more) = more.split_at(u32::from_be_bytes(*length) as usize);
        let (what, object) = wire::decode_watch_event(frame).expect("an event");
        seen.push((what, object["metadata"]["name"].as_str().expect("a name").to_owned()));
        rest = more;
    }
    assert_eq!(seen, [("ADDED".to_owned(), "a".to_owned()), ("ADDED".to_owned(), "b".to_owned())]);
}
