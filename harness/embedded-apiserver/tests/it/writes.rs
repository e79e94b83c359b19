//! Writes whose answers matter to a client's code: status codes, and what the server adds or rejects.

use serde_json::{Value, json};

use crate::client::{Answer, Cluster};

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn merge(cluster: &Cluster, path: &str, patch: Value) -> Answer {
    cluster.send("PATCH", path, MERGE, patch.to_string()).await
}

/// The code and message of a rejection.
fn code_and_message(answer: &Answer) -> (u16, String) {
    (answer.status, answer.body()["message"].as_str().unwrap_or_default().to_owned())
}

async fn made(cluster: &Cluster, path: &str, object: Value) -> Value {
    let made = cluster.ask("POST", path, Some(object)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.body()
}

#[tokio::test(flavor = "multi_thread")]
async fn tolerations_that_a_patch_leaves_out_come_back() {
    let cluster = Cluster::start().await;
    let account = json!({"metadata": {"name": "default"}});
    cluster.ask("POST", "/api/v1/namespaces/default/serviceaccounts", Some(account)).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let before = made(&cluster, PODS, pod).await;
    let own = json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"});
    let patched = merge(&cluster, &format!("{PODS}/p"), json!({"spec": {"tolerations": [own]}})).await;
    assert_eq!(patched.status, 200, "{}", patched.text);
    let mut expected = vec![own];
    expected.extend(before["spec"]["tolerations"].as_array().expect("tolerations").iter().cloned());
    assert_eq!(patched.body()["spec"]["tolerations"], Value::Array(expected));
    // A list item that the Pod has stays: leaving it out is rejected.
    let without = merge(&cluster, &format!("{PODS}/p"), json!({"spec": {"tolerations": []}})).await;
    assert_eq!(without.status, 422, "{}", without.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_fields_are_cleared_by_one_empty_entry_and_otherwise_taken_as_sent() {
    let cluster = Cluster::start().await;
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "1"}});
    let before = made(&cluster, &format!("{MAPS}?fieldManager=first"), map).await;
    let path = format!("{MAPS}/a");
    let managers = |answer: &Answer| -> Vec<String> {
        let entries = answer.body()["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut other = before["metadata"]["managedFields"].clone();
    other[0]["manager"] = json!("second");
    let moved = merge(&cluster, &path, json!({"metadata": {"managedFields": other}})).await;
    assert_eq!((moved.status, managers(&moved)), (200, vec!["second".to_owned()]), "{}", moved.text);
    let unusable =
        merge(&cluster, &path, json!({"metadata": {"managedFields": [{"manager": "x"}, {}]}})).await;
    assert_eq!((unusable.status, managers(&unusable)), (200, vec!["second".to_owned()]), "{}", unusable.text);
    let cleared = merge(&cluster, &path, json!({"metadata": {"managedFields": [{}]}})).await;
    assert_eq!((cleared.status, managers(&cleared)), (200, Vec::new()), "{}", cleared.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_has_a_printable_name_of_128_bytes_at_most() {
    let cluster = Cluster::start().await;
    let long = "m".repeat(129);
    let map = || Some(json!({"metadata": {"name": "a"}, "data": {"x": "1"}}));
    let expected =
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes";
    let refused = cluster.ask("POST", &format!("{MAPS}?fieldManager={long}"), map()).await;
    assert_eq!(code_and_message(&refused), (422, expected.to_owned()));
    assert_eq!(
        cluster.ask("POST", &format!("{MAPS}?fieldManager={}", "m".repeat(128)), map()).await.status,
        201
    );
    for (method, options, content) in [
        ("PUT", "UpdateOptions", "application/json"),
        ("PATCH", "PatchOptions", MERGE),
        ("PATCH", "PatchOptions", APPLY),
    ] {
        let path = format!("{MAPS}/a?fieldManager={long}");
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let refused = cluster.send(method, &path, content, body.to_string()).await;
        let (code, message) = code_and_message(&refused);
        assert!(code == 422 && message.starts_with(options), "{content}: {code} {message}");
    }
    let control = cluster.ask("POST", &format!("{MAPS}?fieldManager=a%07b"), map()).await;
    assert_eq!(control.status, 422, "{}", control.text);
    assert!(control.text.contains("invalid character U+0007 (at position 1)"), "{}", control.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_need_a_domain_only_where_the_kind_asks_for_one() {
    let cluster = Cluster::start().await;
    let named = json!({"metadata": {"name": "a", "finalizers": ["mine"]}});
    let with = |more: Value| {
        let mut object = named.clone();
        object.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        object
    };
    let taken = [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", with(json!({"spec": {}}))),
        ("/apis/node.k8s.io/v1/runtimeclasses", with(json!({"handler": "runc"}))),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", with(json!({"spec": {}}))),
        ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", with(json!({}))),
    ];
    for (path, object) in taken {
        made(&cluster, path, object).await;
    }
    for (path, object) in [
        (MAPS, named.clone()),
        ("/apis/storage.k8s.io/v1/storageclasses", with(json!({"provisioner": "x"}))),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", with(json!({"value": 1}))),
    ] {
        let refused = cluster.ask("POST", path, Some(object)).await;
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        assert!(refused.status == 422 && refused.text.contains(why), "{path}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_writes_have_the_codes_that_clients_look_for() {
    let cluster = Cluster::start().await;
    let map = made(&cluster, MAPS, json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await;
    let path = format!("{MAPS}/a");
    let mut odd = map.clone();
    odd["metadata"]["resourceVersion"] = json!("abc");
    let refused = cluster.ask("PUT", &path, Some(odd)).await;
    let why = "strconv.ParseUint: parsing \"abc\": invalid syntax";
    assert_eq!(code_and_message(&refused), (500, why.to_owned()));
    let array =
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    assert_eq!(code_and_message(&merge(&cluster, &path, json!([])).await), (400, array.to_owned()));
    // Another uid: a failed condition of a PUT, and for a patch a change of an immutable field. By the code,
    // controllers recognise an object that was deleted and created again under its name.
    let mut other = map.clone();
    other["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    assert_eq!(cluster.ask("PUT", &path, Some(other)).await.status, 409);
    let patched =
        merge(&cluster, &path, json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}})).await;
    assert!(patched.status == 422 && patched.text.contains("metadata.uid"), "{}", patched.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_objects_are_of_the_paths_kind_and_have_its_fields() {
    let cluster = Cluster::start().await;
    let path = |more: &str| format!("{MAPS}/a?fieldManager=m{more}");
    let apply = async |path: String, body: &str| cluster.send("PATCH", &path, APPLY, body).await;
    let other = apply(path(""), r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}"#).await;
    assert_eq!(code_and_message(&other), (400, "invalid object type: /v1, Kind=Secret".to_owned()));
    let unknown = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dato": {}}"#;
    for mode in ["", "&fieldValidation=Strict", "&fieldValidation=Ignore"] {
        let (code, why) = code_and_message(&apply(path(mode), unknown).await);
        assert!(code == 500 && why.ends_with(".dato: field not declared in schema"), "{mode}: {code} {why}");
    }
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: '1'\n  x: '2'\n";
    let (code, why) = code_and_message(&apply(path("&fieldValidation=Strict"), twice).await);
    let where_ =
        "error converting YAML to JSON: yaml: unmarshal errors:\n  line 6: key \"x\" already set in map";
    assert_eq!((code, why), (400, format!("error strict decoding YAML: {where_}")));
    let warned = apply(path(""), twice).await;
    assert_eq!((warned.status, warned.body()["data"]["x"].clone()), (201, json!("2")), "{}", warned.text);
    // The warning has a line break, which is not allowed in a header.
    assert!(warned.warnings.is_empty(), "{:?}", warned.warnings);
}
