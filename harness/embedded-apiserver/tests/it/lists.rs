//! Lists in the forms that clients request: each item equals the object's own answer in that form.

use embedded_objects::wire;
use serde_json::{Value, json};

use crate::client::Cluster;

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn get(cluster: &Cluster, path: &str, accept: &str) -> Vec<u8> {
    let request = cluster.admin.get(format!("{}{path}", cluster.server.url())).header("Accept", accept);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{path} as {accept}");
    answer.bytes().await.expect("a body").to_vec()
}

async fn json_of(cluster: &Cluster, path: &str, accept: &str) -> Value {
    serde_json::from_slice(&get(cluster, path, accept).await).expect("JSON")
}

/// A cluster with one object of each sort: built-in, with conditions in its row, in two versions, and custom.
async fn cluster() -> (Cluster, Vec<(&'static str, &'static str)>) {
    let cluster = Cluster::start().await;
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Cluster", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".color"}]}]}});
    let container = json!([{"name": "c", "image": "i"}]);
    let objects = [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
        ("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}})),
        (
            "/api/v1/nodes",
            json!({"metadata": {"name": "a", "labels": {"x": "y"}, "annotations": {"x": "<&>"}}}),
        ),
        (
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "a"}, "spec": {"containers": container}}),
        ),
        (
            "/api/v1/namespaces/default/events",
            json!({"metadata": {"name": "a"}, "reason": "R",
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}}),
        ),
        (
            "/apis/example.com/v1/gadgets",
            json!({"apiVersion": "example.com/v1", "kind": "Gadget",
            "metadata": {"name": "a"}, "color": "red"}),
        ),
    ];
    for (path, object) in objects {
        let made = cluster.ask("POST", path, Some(object)).await;
        assert!(made.status == 201 || made.status == 409, "{path}: {}", made.text);
    }
    let done = json!({"status": {"phase": "Succeeded"}}).to_string();
    let pod = "/api/v1/namespaces/default/pods/a/status";
    assert_eq!(cluster.send("PATCH", pod, "application/merge-patch+json", done).await.status, 200);
    let lists = vec![
        ("/api/v1/nodes", "/api/v1/nodes/a"),
        ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/a"),
        (
            "/apis/events.k8s.io/v1/namespaces/default/events",
            "/apis/events.k8s.io/v1/namespaces/default/events/a",
        ),
        ("/apis/example.com/v1/gadgets", "/apis/example.com/v1/gadgets/a"),
    ];
    (cluster, lists)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_many_has_the_rows_of_each() {
    let (cluster, lists) = cluster().await;
    for (list, one) in lists {
        for include in ["", "?includeObject=Object", "?includeObject=None"] {
            let many = json_of(&cluster, &format!("{list}{include}"), TABLE).await;
            let single = json_of(&cluster, &format!("{one}{include}"), TABLE).await;
            assert_eq!(many["columnDefinitions"], single["columnDefinitions"], "{list}");
            assert_eq!(many["rows"], single["rows"], "{list}{include}");
            assert_eq!(many["rows"].as_array().map(Vec::len), Some(1), "{list}");
            // People get a different layout.
            let separator = if include.is_empty() { "?" } else { "&" };
            let pretty = json_of(&cluster, &format!("{list}{include}{separator}pretty=1"), TABLE).await;
            assert_eq!(pretty["rows"], many["rows"], "{list}{include}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_metadata_has_that_of_each_object() {
    let (cluster, lists) = cluster().await;
    let protobuf = format!("{};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", wire::PROTOBUF);
    for (list, one) in lists {
        let single = json_of(&cluster, one, METADATA).await;
        assert_eq!(single["kind"], "PartialObjectMetadata");
        let many = json_of(&cluster, list, METADATA_LIST).await;
        assert_eq!(
            (&many["kind"], &many["items"][0]),
            (&json!("PartialObjectMetadataList"), &single),
            "{list}"
        );
        // Once before any client has requested the objects in protobuf, once after.
        for _ in 0..2 {
            let (_, _, decoded) =
                wire::decode_protobuf(&get(&cluster, list, &protobuf).await).expect("protobuf");
            assert_eq!(decoded["items"][0]["metadata"], single["metadata"], "{list}");
            assert_eq!(decoded["metadata"]["resourceVersion"], many["metadata"]["resourceVersion"]);
            get(&cluster, list, &format!("{},application/json", wire::PROTOBUF)).await;
        }
    }
}
