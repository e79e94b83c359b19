//! Protobuf, the encoding of components that are built on the Go framework.

use embedded_objects::wire;
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

/// The fields of a message, each with its number. This reader does not use the tables under test.
fn message(mut rest: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(rest: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, more) = rest.split_first().expect("a whole number");
            *rest = more;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let before = rest;
        let content = match key & 7 {
            0 => {
                varint(&mut rest);
                &before[..before.len() - rest.len()]
            }
            2 => {
                let length = usize::try_from(varint(&mut rest)).expect("it is short");
                let (content, more) = rest.split_at(length);
                rest = more;
                content
            }
            wire => panic!("wire type {wire} in a discovery document"),
        };
        fields.push((key >> 3, content));
    }
    fields
}

fn fields<'a>(of: &[u8], number: u64, found: &[(u64, &'a [u8])]) -> Vec<&'a [u8]> {
    assert!(!of.is_empty());
    found.iter().filter(|(is, _)| *is == number).map(|(_, content)| *content).collect()
}

/// The body of the envelope around an object.
fn body(bytes: &[u8]) -> &[u8] {
    let envelope = message(bytes.strip_prefix(b"k8s\0").expect("the prefix of protobuf"));
    envelope.into_iter().find(|(number, _)| *number == 2).expect("a body").1
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_has_the_numbers_of_the_generated_types() {
    let cluster = Cluster::start().await;
    let plain = cluster.ask("GET", "/apis/apps/v1", None).await.body();
    let (content_type, bytes) = get(&cluster, "/apis/apps/v1").await;
    assert_eq!(content_type, wire::PROTOBUF);
    let list = message(body(&bytes));
    assert_eq!(fields(&bytes, 1, &list), [b"apps/v1".as_slice()]);
    let resources = fields(&bytes, 2, &list);
    let expected = plain["resources"].as_array().expect("resources");
    assert_eq!(resources.len(), expected.len());
    for (resource, expected) in resources.into_iter().zip(expected) {
        let members = message(resource);
        assert_eq!(fields(resource, 1, &members), [expected["name"].as_str().expect("a name").as_bytes()]);
        let verbs = fields(resource, 4, &members);
        assert_eq!(verbs.len(), 1, "the verbs of {} are one message", expected["name"]);
        let items: Vec<Value> = message(verbs[0])
            .iter()
            .map(|(_, verb)| String::from_utf8_lossy(verb).into_owned().into())
            .collect();
        assert_eq!(Value::Array(items), expected["verbs"]);
    }
    for path in ["/api", "/apis", "/api/v1", "/apis/apps"] {
        let plain = cluster.ask("GET", path, None).await.body();
        let mut decoded = decode(&get(&cluster, path).await.1);
        // The oldest documents have no apiVersion in JSON.
        if plain["apiVersion"].is_null() {
            decoded.as_object_mut().expect("an object").remove("apiVersion");
        }
        for name in ["resources", "groups", "versions", "groupVersion"] {
            assert_eq!(decoded[name], plain[name], "{path}");
        }
    }
    let aggregated = format!("{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", wire::PROTOBUF);
    let request = cluster.admin.get(format!("{}/apis", cluster.server.url())).header("Accept", &aggregated);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.headers()["content-type"], aggregated.as_str());
    let groups = decode(&answer.bytes().await.expect("a body"));
    assert!(groups["items"].as_array().is_some_and(|items| items.len() > 15), "{groups}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_of_custom_resources_are_taken_and_served_as_protobuf() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let cluster = Cluster::start().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "ports": {"type": "array", "items": {"type": "integer", "maximum": 65535}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let bytes = wire::encode_protobuf(&definition).expect("protobuf");
    let made = cluster.send("POST", DEFINITIONS, wire::PROTOBUF, bytes).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let plain = cluster.ask("GET", &format!("{DEFINITIONS}/gadgets.example.com"), None).await.body();
    assert_eq!(plain["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
    let (content_type, bytes) = get(&cluster, &format!("{DEFINITIONS}/gadgets.example.com")).await;
    assert_eq!((content_type.as_str(), decode(&bytes)), (wire::PROTOBUF, plain.clone()));
    let list = decode(&get(&cluster, DEFINITIONS).await.1);
    assert_eq!(list["items"][0]["spec"], plain["spec"]);
    // A definition that was sent in protobuf is served.
    let gadget = |port: u32| json!({"metadata": {"name": "a"}, "spec": {"ports": [port]}});
    let gadgets = "/apis/example.com/v1/gadgets";
    let wrong = cluster.ask("POST", gadgets, Some(gadget(70_000))).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
    let made = cluster.ask("POST", gadgets, Some(gadget(80))).await;
    assert_eq!(made.status, 201, "{}", made.text);
}
