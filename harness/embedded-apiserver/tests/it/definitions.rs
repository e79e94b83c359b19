//! Custom resources: their definitions, and their objects.

use std::time::Duration;

use embedded_apiserver::User;
use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Answer, Cluster, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";

/// Gadgets in two versions; the older one has fewer fields.
fn definition() -> Value {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["color"], "properties": {
            "color": {"type": "string", "enum": ["red", "green"]},
            "size": {"type": "integer", "default": 1, "maximum": 10},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "count": {"type": "integer"}}}}}},
        "status": {"type": "object", "properties": {
            "size": {"type": "integer"}, "selector": {"type": "string"}}}}});
    let old = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["all"]},
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": old}},
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}},
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                    "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]},
            ],
        },
    })
}

fn gadget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": {"color": "red"}})
}

async fn defined() -> Cluster {
    let cluster = Cluster::start().await;
    let made = cluster.ask("POST", DEFINITIONS, Some(definition())).await;
    assert_eq!(made.status, 201, "{}", made.text);
    cluster
}

async fn get(cluster: &Cluster, path: &str) -> Answer {
    cluster.ask("GET", path, None).await
}

async fn merge(cluster: &Cluster, path: &str, patch: Value) -> Answer {
    cluster.send("PATCH", path, "application/merge-patch+json", patch.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_established_and_discovered() {
    let cluster = defined().await;
    let known = get(&cluster, &format!("{DEFINITIONS}/gadgets.example.com")).await.body();
    let conditions: Vec<String> = known["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .map(|one| format!("{}={} {}", one["type"], one["status"], one["reason"]).replace('"', ""))
        .collect();
    assert_eq!(conditions, ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]);
    assert_eq!(known["status"]["storedVersions"], json!(["v1"]));
    let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
        "shortNames": ["gd"], "categories": ["all"]});
    assert_eq!(known["status"]["acceptedNames"], names);
    assert_eq!(known["spec"]["conversion"], json!({"strategy": "None"}));

    let group = get(&cluster, "/apis/example.com").await.body();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"].as_array().map(Vec::len), Some(2));
    let groups = get(&cluster, "/apis").await.body();
    assert_eq!(
        groups["groups"].as_array().and_then(|all| all.last()).map(|last| last["name"].clone()),
        Some(json!("example.com"))
    );
    let resources = get(&cluster, "/apis/example.com/v1").await.body();
    let named: Vec<&Value> =
        resources["resources"].as_array().expect("resources").iter().map(|one| &one["name"]).collect();
    assert_eq!(named, ["gadgets", "gadgets/scale", "gadgets/status"]);
    let aggregated = cluster
        .admin
        .get(format!("{}/apis", cluster.server.url()))
        .header("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        .send()
        .await
        .expect("an answer");
    let aggregated: Value = serde_json::from_str(&aggregated.text().await.expect("a body")).expect("JSON");
    let last = aggregated["items"].as_array().and_then(|items| items.last()).expect("groups");
    assert_eq!(last["metadata"]["name"], "example.com");
    assert_eq!(
        last["versions"][0]["resources"][0]["responseKind"],
        json!({"group": "example.com", "version": "v1", "kind": "Gadget"})
    );
    assert!(get(&cluster, "/openapi/v3/apis/example.com/v1").await.text.contains("fieldValidation"));
    // Another server in this process does not have it.
    let other = Cluster::start().await;
    assert_eq!(get(&other, GADGETS).await.status, 404);
    assert_eq!(get(&other, "/apis/example.com").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_definition_are_reported() {
    let cluster = Cluster::start().await;
    let mut wrong = definition();
    wrong["metadata"]["name"] = json!("gadget.example.com");
    wrong["spec"]["versions"][0]["storage"] = json!(true);
    let refused = cluster.ask("POST", DEFINITIONS, Some(wrong)).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("must be spec.names.plural"), "{}", refused.text);
    assert!(refused.text.contains("exactly one version marked as storage version"), "{}", refused.text);
    assert_eq!(cluster.ask("POST", DEFINITIONS, Some(definition())).await.status, 201);
    // A definition with another plural and the same kind has to wait for the name.
    let mut twin = definition();
    twin["metadata"]["name"] = json!("widgets.example.com");
    twin["spec"]["names"] = json!({"plural": "widgets", "kind": "Gadget"});
    assert_eq!(cluster.ask("POST", DEFINITIONS, Some(twin)).await.status, 201);
    let twin = get(&cluster, &format!("{DEFINITIONS}/widgets.example.com")).await.body();
    assert_eq!(twin["status"]["conditions"][1]["status"], "False", "{twin}");
    let widgets = "/apis/example.com/v1/widgets";
    assert_eq!(get(&cluster, widgets).await.status, 404);
    let moved =
        merge(&cluster, &format!("{DEFINITIONS}/gadgets.example.com"), json!({"spec": {"scope": "Cluster"}}))
            .await;
    assert!(moved.status == 422 && moved.text.contains("field is immutable"), "{}", moved.text);
    // When the first definition is deleted, the other one gets the name without a write.
    let gone = cluster.ask("DELETE", &format!("{DEFINITIONS}/gadgets.example.com"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.text);
    let settled = get(&cluster, &format!("{DEFINITIONS}/widgets.example.com")).await.body();
    assert_eq!(settled["status"]["acceptedNames"]["kind"], "Gadget", "{settled}");
    assert_eq!(settled["status"]["conditions"][1]["status"], "True", "{settled}");
    assert_eq!(get(&cluster, widgets).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_defaulted_pruned_and_checked() {
    let cluster = defined().await;
    let mut sent = gadget("a");
    sent["spec"]["bogus"] = json!(1);
    sent["spec"]["free"] = json!({"any": {"thing": 1}});
    sent["status"] = json!({"size": 7});
    let made = cluster.ask("POST", GADGETS, Some(sent.clone())).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let object = made.body();
    assert_eq!(object["spec"], json!({"color": "red", "size": 1, "free": {"any": {"thing": 1}}}));
    assert_eq!((&object["status"], &object["metadata"]["generation"]), (&Value::Null, &json!(1)));
    assert_eq!(made.warnings, ["299 - \"unknown field \\\"spec.bogus\\\"\""]);
    sent["metadata"]["name"] = json!("b");
    let strict = cluster.ask("POST", &format!("{GADGETS}?fieldValidation=Strict"), Some(sent)).await;
    assert!(strict.status == 400 && strict.text.contains("unknown field"), "{}", strict.text);
    let wrong = merge(
        &cluster,
        &format!("{GADGETS}/a"),
        json!({"spec": {"color": "blue", "size": "x", "parts": [{}]}}),
    )
    .await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
    for expected in [
        "spec.color: Unsupported value: \\\"blue\\\": supported values: \\\"red\\\", \\\"green\\\"",
        "spec.size in body must be of type integer",
        "spec.parts[0].name: Required value",
    ] {
        assert!(wrong.text.contains(expected), "{expected} in {}", wrong.text);
    }
    let protobuf = cluster.send("POST", GADGETS, "application/vnd.kubernetes.protobuf", "k8s").await;
    assert_eq!(protobuf.status, 415);
    let strategic =
        cluster.send("PATCH", &format!("{GADGETS}/a"), "application/strategic-merge-patch+json", "{}").await;
    assert_eq!(strategic.status, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_status_and_scale_are_kept_apart() {
    let cluster = defined().await;
    cluster.ask("POST", GADGETS, Some(gadget("a"))).await;
    let path = format!("{GADGETS}/a");
    let labelled = merge(&cluster, &path, json!({"metadata": {"labels": {"a": "b"}}, "status": {"size": 3}}))
        .await
        .body();
    assert_eq!((&labelled["metadata"]["generation"], &labelled["status"]), (&json!(1), &Value::Null));
    let grown = merge(&cluster, &path, json!({"spec": {"size": 2}})).await.body();
    assert_eq!(grown["metadata"]["generation"], 2);
    let status = json!({"spec": {"size": 9}, "metadata": {"labels": {"a": "c"}}, "status": {"size": 2, "selector": "x=y"}});
    let updated = merge(&cluster, &format!("{path}/status"), status).await.body();
    assert_eq!(updated["spec"]["size"], 2);
    assert_eq!(updated["metadata"]["labels"]["a"], "b");
    assert_eq!((&updated["metadata"]["generation"], &updated["status"]["size"]), (&json!(2), &json!(2)));
    let managers: Vec<&Value> = updated["metadata"]["managedFields"]
        .as_array()
        .expect("managers")
        .iter()
        .map(|one| &one["subresource"])
        .collect();
    assert!(managers.contains(&&json!("status")), "{updated}");
    let scale = get(&cluster, &format!("{path}/scale")).await.body();
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]),
        (&json!(2), &json!({"replicas": 2, "selector": "x=y"}))
    );
    assert_eq!(merge(&cluster, &format!("{path}/scale"), json!({"spec": {"replicas": 5}})).await.status, 200);
    let scaled = get(&cluster, &path).await.body();
    assert_eq!((&scaled["spec"]["size"], &scaled["metadata"]["generation"]), (&json!(5), &json!(3)));
    let refused = merge(&cluster, &format!("{path}/scale"), json!({"spec": {"replicas": 11}})).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let mut stale = scaled;
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(cluster.ask("PUT", &path, Some(stale.clone())).await.status, 409);
    stale["metadata"]["resourceVersion"] = Value::Null;
    assert_eq!(cluster.ask("PUT", &path, Some(stale)).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_differ_in_their_name_alone() {
    let cluster = defined().await;
    cluster.ask("POST", GADGETS, Some(gadget("a"))).await;
    let old = "/apis/example.com/v1beta1/namespaces/default/gadgets";
    let seen = get(&cluster, &format!("{old}/a")).await;
    assert_eq!(seen.body()["apiVersion"], "example.com/v1beta1");
    assert_eq!(seen.warnings, ["299 - \"example.com/v1beta1 Gadget is deprecated\""]);
    let made = json!({"apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "b"}, "spec": {"color": "red", "other": 1}});
    assert_eq!(cluster.ask("POST", old, Some(made)).await.status, 201);
    let all = get(&cluster, GADGETS).await.body();
    assert_eq!((&all["kind"], &all["apiVersion"]), (&json!("GadgetList"), &json!("example.com/v1")));
    let names: Vec<&Value> =
        all["items"].as_array().expect("items").iter().map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let changed = merge(&cluster, &format!("{old}/a"), json!({"spec": {"color": "green"}})).await.body();
    assert_eq!(
        (&changed["apiVersion"], &changed["spec"]["color"]),
        (&json!("example.com/v1beta1"), &json!("green"))
    );
    assert_eq!(get(&cluster, &format!("{GADGETS}/a")).await.body()["spec"]["color"], "green");
    // Watchers of either version see objects in their own version.
    for version in ["v1", "v1beta1"] {
        let watch = format!("/apis/example.com/{version}/gadgets?watch=1&timeoutSeconds=1");
        let seen = get(&cluster, &watch).await;
        let line: Value = serde_json::from_str(seen.text.lines().next().expect("an event")).expect("JSON");
        assert_eq!(line["object"]["apiVersion"], format!("example.com/{version}"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_tables_and_roles_work() {
    let cluster = defined().await;
    for (name, color) in [("a", "red"), ("b", "green")] {
        let mut object = gadget(name);
        object["spec"]["color"] = json!(color);
        object["metadata"]["labels"] = json!({"name": name});
        cluster.ask("POST", GADGETS, Some(object)).await;
    }
    let count = async |query: &str| {
        let list = get(&cluster, &format!("{GADGETS}?{query}")).await;
        list.body()["items"].as_array().map(Vec::len)
    };
    assert_eq!(count("labelSelector=name%3Da").await, Some(1));
    assert_eq!(count("fieldSelector=metadata.name%3Db").await, Some(1));
    assert_eq!(count("fieldSelector=spec.color%3Dgreen").await, Some(1));
    assert_eq!(count("fieldSelector=spec.color%3Dblack").await, Some(0));
    assert_eq!(get(&cluster, &format!("{GADGETS}?fieldSelector=spec.size%3D1")).await.status, 400);
    let table = cluster
        .admin
        .get(format!("{}{GADGETS}", cluster.server.url()))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .send()
        .await
        .expect("an answer");
    let table: Value = serde_json::from_str(&table.text().await.expect("a body")).expect("JSON");
    assert_eq!(table["rows"][1]["cells"], json!(["b", "green"]));
    // Clients that prefer protobuf get JSON.
    let answer = cluster
        .admin
        .get(format!("{}{GADGETS}", cluster.server.url()))
        .header("Accept", "application/vnd.kubernetes.protobuf,application/json")
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.headers()["content-type"], "application/json");

    let reader = cluster.client(&User::authenticated("reader", &[]));
    let url = cluster.server.url();
    assert_eq!(send(&reader, &url, "GET", GADGETS, None, None).await.status, 403);
    let role = json!({"metadata": {"name": "gadgets"}, "rules": [{"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["list"]}]});
    let binding = json!({"metadata": {"name": "gadgets"}, "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gadgets"}});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(cluster.ask("POST", &format!("{rbac}/clusterroles"), Some(role)).await.status, 201);
    assert_eq!(cluster.ask("POST", &format!("{rbac}/clusterrolebindings"), Some(binding)).await.status, 201);
    assert_eq!(send(&reader, &url, "GET", GADGETS, None, None).await.status, 200);
    assert_eq!(send(&reader, &url, "GET", &format!("{GADGETS}/a"), None, None).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_lists_merge_by_the_keys_of_the_schema() {
    let cluster = defined().await;
    let apply = async |manager: &str, spec: Value| {
        let mut object = gadget("a");
        object["spec"] = spec;
        let path = format!("{GADGETS}/a?fieldManager={manager}");
        cluster.send("PATCH", &path, "application/apply-patch+yaml", object.to_string()).await
    };
    let first =
        apply("one", json!({"color": "red", "parts": [{"name": "x", "count": 1}], "free": {"a": {"b": 1}}}))
            .await;
    assert_eq!(first.status, 201, "{}", first.text);
    let second =
        apply("two", json!({"color": "red", "parts": [{"name": "y", "count": 2}], "free": {"a": {"c": 2}}}))
            .await
            .body();
    assert_eq!(second["spec"]["parts"], json!([{"name": "x", "count": 1}, {"name": "y", "count": 2}]));
    assert_eq!(second["spec"]["free"], json!({"a": {"b": 1, "c": 2}}));
    let conflict = apply("two", json!({"color": "green"})).await;
    assert!(conflict.status == 409 && conflict.text.contains(".spec.color"), "{}", conflict.text);
    let without = apply("two", json!({"color": "red"})).await.body();
    assert_eq!(without["spec"]["parts"], json!([{"name": "x", "count": 1}]));
    assert_eq!(without["spec"]["free"], json!({"a": {"b": 1}}));
    let unknown = apply("two", json!({"color": "red", "bogus": 1})).await;
    assert!(unknown.text.contains(".spec.bogus: field not declared in schema"), "{}", unknown.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_definition_go_its_objects_and_its_paths() {
    let cluster = defined().await;
    let mut held = gadget("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    for object in [gadget("a"), held] {
        assert_eq!(cluster.ask("POST", GADGETS, Some(object)).await.status, 201);
    }
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let gadgets: Api<DynamicObject> =
        Api::default_namespaced_with(cluster.server.client(User::admin()), &resource());
    let watched = gadgets.watch(&Default::default(), "0").await.expect("a watch");
    let deleted = cluster.ask("DELETE", &path, None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text);
    let finalizers = &deleted.body()["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(get(&cluster, &format!("{GADGETS}/a")).await.status, 404);
    // One object is held, and so is its definition; no more objects can be created.
    let known = get(&cluster, &path).await.body();
    let terminating = known["status"]["conditions"].as_array().and_then(|all| all.last()).cloned();
    assert_eq!(terminating.map(|one| one["type"].clone()), Some(json!("Terminating")));
    let refused = cluster.ask("POST", GADGETS, Some(gadget("b"))).await;
    assert!(refused.status == 405 && refused.text.contains("terminating"), "{}", refused.text);
    let released =
        merge(&cluster, &format!("{GADGETS}/held"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(released.status, 200, "{}", released.text);
    assert_eq!(get(&cluster, &path).await.status, 404);
    assert_eq!(get(&cluster, GADGETS).await.status, 404);
    assert_eq!(get(&cluster, "/apis/example.com").await.status, 404);
    // The watch reports both deletions and then ends.
    let events: Vec<_> = tokio::time::timeout(Duration::from_secs(20), watched.try_collect())
        .await
        .expect("it ends")
        .expect("events");
    let gone = events.iter().filter(|event| matches!(event, kube::api::WatchEvent::Deleted(_))).count();
    assert_eq!(gone, 2, "{events:?}");
    // When it is defined again, it starts empty.
    assert_eq!(cluster.ask("POST", DEFINITIONS, Some(definition())).await.status, 201);
    assert_eq!(get(&cluster, GADGETS).await.body()["items"], json!([]));
}

fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Gadget"), "gadgets")
}

/// A gadget as a Rust type.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Gadget {
    metadata: kube::api::ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Spec {
    color: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i32>,
}

impl Resource for Gadget {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind(_: &()) -> std::borrow::Cow<'_, str> {
        "Gadget".into()
    }

    fn group(_: &()) -> std::borrow::Cow<'_, str> {
        "example.com".into()
    }

    fn version(_: &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> std::borrow::Cow<'_, str> {
        "gadgets".into()
    }

    fn meta(&self) -> &kube::api::ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut kube::api::ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_sees_custom_resources() {
    let cluster = defined().await;
    let gadgets: Api<Gadget> = Api::default_namespaced(cluster.server.client(User::admin()));
    let metadata = kube::api::ObjectMeta { name: Some("a".to_owned()), ..Default::default() };
    let new = Gadget { metadata, spec: Spec { color: "red".to_owned(), size: None } };
    let made = gadgets.create(&PostParams::default(), &new).await.expect("created");
    assert_eq!(made.spec.size, Some(1));
    let stream = watcher(gadgets.clone(), watcher::Config::default()).applied_objects();
    let mut stream = std::pin::pin!(stream);
    let patch = Patch::Merge(json!({"spec": {"size": 4}}));
    gadgets.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    loop {
        let seen = stream.try_next().await.expect("a watch").expect("an object");
        if seen.spec.size == Some(4) {
            break;
        }
    }
    let any: Api<DynamicObject> =
        Api::default_namespaced_with(cluster.server.client(User::admin()), &resource());
    assert_eq!(any.get("a").await.expect("it is there").data["spec"]["size"], 4);
    assert_eq!(any.list_metadata(&Default::default()).await.expect("a list").items.len(), 1);
    let gone = any.delete_collection(&Default::default(), &Default::default()).await.expect("deleted");
    assert_eq!(gone.left().map(|list| list.items.len()), Some(1));
    assert_eq!(any.list(&Default::default()).await.expect("a list").items.len(), 0);
}
