//! The limits of what is served: requests that lead elsewhere, that are too large, compressed answers, and
//! old APIs.

use std::io::Read as _;

use embedded_apiserver::User;
use serde_json::{Value, json};

use crate::client::{Cluster, send};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

async fn with_pod() -> Cluster {
    let cluster = Cluster::start().await;
    cluster
        .ask(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            Some(json!({"metadata": {"name": "default"}})),
        )
        .await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}});
    let made = cluster.ask("POST", PODS, Some(pod)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    cluster
}

async fn ask(cluster: &Cluster, method: &str, path: &str) -> (u16, String) {
    let answer = cluster.ask(method, path, None).await;
    (answer.status, answer.body()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_a_kubelet_fail_as_if_it_were_unreachable() {
    let cluster = with_pod().await;
    let exec = format!("{PODS}/p/exec?command=sh");
    assert_eq!(ask(&cluster, "POST", &exec).await, (400, "pod p does not have a host assigned".to_owned()));
    let unknown = ask(&cluster, "GET", &format!("{exec}&container=b")).await;
    assert_eq!(unknown, (400, "container b is not valid for pod p".to_owned()));
    let node = json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}});
    assert_eq!(cluster.ask("POST", "/api/v1/nodes", Some(node)).await.status, 201);
    let bound = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(cluster.ask("POST", &format!("{PODS}/p/binding"), Some(bound)).await.status, 201);
    let refused = "error dialing backend: dial tcp 10.0.0.9:10250: connect: connection refused";
    for sub in ["exec?command=sh", "attach", "portforward"] {
        assert_eq!(
            ask(&cluster, "POST", &format!("{PODS}/p/{sub}")).await,
            (500, refused.to_owned()),
            "{sub}"
        );
    }
    let (code, why) = ask(&cluster, "GET", "/api/v1/nodes/n/proxy/healthz").await;
    assert!(code == 503 && why.contains("10.0.0.9:10250"), "{code} {why}");
    assert_eq!(ask(&cluster, "GET", &format!("{PODS}/absent/exec")).await.0, 404);
    // The right to a Pod does not include a shell in it.
    let unprivileged = cluster.client(&User::authenticated("nobody", &[]));
    let denied = send(&unprivileged, &cluster.server.url(), "POST", &exec, None, None).await;
    assert_eq!(denied.status, 403, "{}", denied.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn debugging_containers_and_resources_change_through_subresources_of_their_own() {
    let cluster = with_pod().await;
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "tools"}]}});
    let direct = cluster.send("PATCH", &format!("{PODS}/p"), MERGE, debug.to_string()).await;
    assert_eq!(direct.status, 422, "{}", direct.text);
    let added =
        cluster.send("PATCH", &format!("{PODS}/p/ephemeralcontainers"), MERGE, debug.to_string()).await;
    assert_eq!(
        (added.status, &added.body()["spec"]["ephemeralContainers"][0]["name"]),
        (200, &json!("debug"))
    );
    assert_eq!(added.body()["metadata"]["generation"], 2);
    let resized = json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}});
    let content = "application/strategic-merge-patch+json";
    let refused = cluster.send("PATCH", &format!("{PODS}/p/resize"), content, resized.to_string()).await;
    assert!(refused.status == 422 && refused.text.contains("QOS Class"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_requests_are_answered_by_paths_that_are_not_resources() {
    let cluster = with_pod().await;
    for (path, code) in [
        ("/healthz", 200),
        ("/api/v1/nodes", 405),
        (&format!("{PODS}/p"), 405),
        (&format!("{PODS}/p/status"), 405),
    ] {
        let request = cluster.admin.head(format!("{}{path}", cluster.server.url()));
        assert_eq!(request.send().await.expect("an answer").status(), code, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_larger_than_etcd_takes_are_refused() {
    let cluster = Cluster::start().await;
    let filled = |bytes: usize| {
        let mut annotations = serde_json::Map::new();
        // Annotations have a size limit, images of a Node have none.
        annotations.insert("a".to_owned(), "b".into());
        json!({"metadata": {"name": "n", "annotations": annotations},
            "status": {"images": [{"names": ["x".repeat(bytes)], "sizeBytes": 1}]}})
    };
    let sent = |bytes: usize| cluster.ask("POST", "/api/v1/nodes", Some(filled(bytes)));
    let large = sent((1536 << 10) + 1).await;
    assert_eq!(
        (large.status, large.body()["message"].clone()),
        (500, json!("etcdserver: request is too large"))
    );
    let larger = sent(2 << 20).await;
    let why = larger.body()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        larger.status == 500 && why.starts_with("rpc error: code = ResourceExhausted desc = trying to send"),
        "{why}"
    );
    assert_eq!(sent(1500 << 10).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_answers_are_compressed_for_those_who_ask() {
    let cluster = Cluster::start().await;
    let node = json!({"metadata": {"name": "n"}, "status": {"images": [{"names": ["x".repeat(200 << 10)], "sizeBytes": 1}]}});
    assert_eq!(cluster.ask("POST", "/api/v1/nodes", Some(node)).await.status, 201);
    let get = async |path: &str, coding: &str| {
        let request = cluster.admin.get(format!("{}{path}", cluster.server.url()));
        let answer = request.header("Accept-Encoding", coding).send().await.expect("an answer");
        let coding =
            answer.headers().get("content-encoding").map(|value| value.to_str().expect("text").to_owned());
        (coding, answer.bytes().await.expect("a body").to_vec())
    };
    let (none, plain) = get("/api/v1/nodes", "identity").await;
    let (coding, small) = get("/api/v1/nodes", "deflate, gzip").await;
    assert_eq!((none, coding.as_deref()), (None, Some("gzip")));
    let mut back = Vec::new();
    flate2::read::GzDecoder::new(small.as_slice()).read_to_end(&mut back).expect("gzip");
    assert!(back == plain && small.len() < plain.len() / 10);
    assert_eq!(get("/api/v1/namespaces", "gzip").await.0, None, "it is small");
}

#[tokio::test(flavor = "multi_thread")]
async fn autoscalers_are_one_in_two_versions() {
    let cluster = Cluster::start().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let older = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
    let made = cluster.ask("POST", &path("v1"), Some(older)).await;
    assert_eq!((made.status, &made.body()["apiVersion"]), (201, &json!("autoscaling/v1")), "{}", made.text);
    let newer = cluster.ask("GET", &format!("{}/a", path("v2")), None).await.body();
    let metric = &newer["spec"]["metrics"][0]["resource"];
    assert_eq!((&metric["name"], &metric["target"]["averageUtilization"]), (&json!("cpu"), &json!(50)));
    let listed = cluster.ask("GET", &path("v1"), None).await.body();
    assert_eq!(listed["items"][0]["spec"]["targetCPUUtilizationPercentage"], 50);
    let changed = json!({"spec": {"targetCPUUtilizationPercentage": 60}}).to_string();
    assert_eq!(cluster.send("PATCH", &format!("{}/a", path("v1")), MERGE, changed).await.status, 200);
    let newer = cluster.ask("GET", &format!("{}/a", path("v2")), None).await.body();
    assert_eq!(newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_components_of_the_control_plane_are_well() {
    let cluster = Cluster::start().await;
    let listed = cluster.ask("GET", "/api/v1/componentstatuses", None).await;
    let body = listed.body();
    let names: Vec<&Value> =
        body["items"].as_array().expect("items").iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["controller-manager", "etcd-0", "scheduler"]);
    assert!(
        listed.warnings.iter().any(|text| text.contains("deprecated in v1.19+")),
        "{:?}",
        listed.warnings
    );
    assert_eq!(cluster.ask("GET", "/api/v1/componentstatuses/scheduler", None).await.status, 200);
    assert_eq!(cluster.ask("GET", "/api/v1/componentstatuses/other", None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_pod_says_why_it_goes() {
    let cluster = with_pod().await;
    let node = json!({"metadata": {"name": "n"}});
    cluster.ask("POST", "/api/v1/nodes", Some(node)).await;
    let bound = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(cluster.ask("POST", &format!("{PODS}/p/binding"), Some(bound)).await.status, 201);
    let version =
        cluster.ask("GET", &format!("{PODS}/p"), None).await.body()["metadata"]["resourceVersion"].clone();
    let evicted = json!({"metadata": {"name": "p"},
        "deleteOptions": {"preconditions": {"resourceVersion": version}}});
    let answer = cluster.ask("POST", &format!("{PODS}/p/eviction"), Some(evicted.clone())).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let pod = cluster.ask("GET", &format!("{PODS}/p"), None).await.body();
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let target = conditions.iter().find(|one| one["type"] == "DisruptionTarget").expect("the condition");
    assert_eq!((&target["status"], &target["reason"]), (&json!("True"), &json!("EvictionByEvictionAPI")));
    // The request has another version than the Pod, so it is not evicted.
    let again = cluster.ask("POST", &format!("{PODS}/p/eviction"), Some(evicted)).await;
    assert_eq!(again.status, 409, "{}", again.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_keeps_its_own_finalizer_when_others_change() {
    let cluster = Cluster::start().await;
    let path = "/api/v1/namespaces/a";
    assert_eq!(
        cluster.ask("POST", "/api/v1/namespaces", Some(json!({"metadata": {"name": "a"}}))).await.status,
        201
    );
    let kept = json!(["kubernetes"]);
    for (content, patch) in [
        (MERGE, json!({"metadata": {"finalizers": ["example.com/x"]}})),
        ("application/strategic-merge-patch+json", json!({"metadata": {"finalizers": ["example.com/y"]}})),
        (
            "application/json-patch+json",
            json!([{"op": "replace", "path": "/metadata/finalizers", "value": []}]),
        ),
        (MERGE, json!({"metadata": {"finalizers": ["example.com/x"]}})),
    ] {
        let patched = cluster.send("PATCH", path, content, patch.to_string()).await;
        assert_eq!(
            (patched.status, &patched.body()["spec"]["finalizers"]),
            (200, &kept),
            "{patch}: {}",
            patched.text
        );
    }
    assert_eq!(cluster.ask("DELETE", path, None).await.status, 200);
    let none =
        cluster.send("PATCH", path, MERGE, json!({"metadata": {"finalizers": null}}).to_string()).await;
    assert_eq!((none.status, &none.body()["spec"]["finalizers"]), (200, &kept), "{}", none.text);
    let there = cluster.ask("GET", path, None).await;
    assert_eq!(
        (there.status, &there.body()["status"]["phase"]),
        (200, &json!("Terminating")),
        "{}",
        there.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn external_names_have_no_policy_of_the_cluster_and_claims_are_protected() {
    let cluster = Cluster::start().await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(cluster.ask("POST", services, Some(service)).await.status, 201);
    let external = json!({"spec": {"type": "ExternalName", "externalName": "example.com"}}).to_string();
    let changed = cluster.send("PATCH", &format!("{services}/s"), MERGE, external).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert!(changed.body()["spec"]["internalTrafficPolicy"].is_null(), "{}", changed.text);
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let made = cluster.ask("POST", claims, Some(claim)).await;
    assert_eq!(
        made.body()["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"]),
        "{}",
        made.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_are_warned_of_what_is_odd_in_pods_templates_and_finalizers() {
    let cluster = with_pod().await;
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let old = json!({"metadata": {"name": "old", "annotations": {key: "runtime/default"}},
        "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "c", "image": "i"}]}});
    let made = cluster.ask("POST", PODS, Some(old)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let profile = &made.body()["spec"]["containers"][0]["securityContext"]["appArmorProfile"];
    assert_eq!(*profile, json!({"type": "RuntimeDefault"}));
    let warnings = made.warnings.join("\n");
    assert!(warnings.contains("use the \\\"appArmorProfile\\\" field instead"), "{warnings}");
    assert!(warnings.contains("deprecated since v1.14; use \\\"kubernetes.io/os\\\" instead"), "{warnings}");
    let contradicts = json!({"metadata": {"name": "odd", "annotations": {key: "unconfined"}},
        "spec": {"containers": [{"name": "c", "image": "i", "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}]}});
    let refused = cluster.ask("POST", PODS, Some(contradicts)).await;
    assert!(
        refused.status == 422 && refused.text.contains("in annotation and field must match"),
        "{}",
        refused.text
    );
    let labels = json!({"a": "b"});
    let container =
        |name: &str| json!({"name": name, "image": "i", "ports": [{"containerPort": 80, "name": "web"}]});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [container("c"), container("d")]}}}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let made = cluster.ask("POST", deployments, Some(deployment)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(made.warnings.iter().any(|text| text.contains("duplicate port name")), "{:?}", made.warnings);
    let scaled = json!({"metadata": {"labels": {"x": "y"}}}).to_string();
    let labelled = cluster.send("PATCH", &format!("{deployments}/d"), MERGE, scaled).await;
    assert!(labelled.warnings.is_empty(), "its spec is as it was: {:?}", labelled.warnings);
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {"group": "example.com",
        "scope": "Cluster", "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(cluster.ask("POST", definitions, Some(definition)).await.status, 201);
    let gadget = json!({"metadata": {"name": "g", "finalizers": ["mine"]}});
    let made = cluster.ask("POST", "/apis/example.com/v1/gadgets", Some(gadget)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert!(
        made.warnings.iter().any(|text| text.contains("prefer a domain-qualified")),
        "{:?}",
        made.warnings
    );
    let listed = cluster.ask("GET", "/apis/example.com/v1/gadgets", None).await.body();
    assert_eq!(listed["items"][0]["kind"], "Gadget", "custom resources say what they are in lists");
    let nodes = cluster.ask("GET", "/api/v1/namespaces?pretty=1", None).await.body();
    assert!(nodes["items"][0]["kind"].is_null(), "and others do not");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_negotiations_have_the_words_of_the_refusing_handler() {
    let cluster = with_pod().await;
    let accept = async |path: &str, accept: &str| {
        let request = cluster.admin.get(format!("{}{path}", cluster.server.url())).header("Accept", accept);
        let answer = request.send().await.expect("an answer");
        let code = answer.status().as_u16();
        let body: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
        (code, body["message"].as_str().unwrap_or_default().to_owned())
    };
    let three = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let router =
        |more: &str| (406, format!("406: Not Acceptable\n\nAvailable representations: {three}{more}"));
    assert_eq!(accept(&format!("{PODS}/p"), "text/html").await, router(""));
    let streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(accept(PODS, "text/html").await, router(streams));
    let form = accept(PODS, "application/json;as=Strange;g=x;v=v1").await;
    assert_eq!(form, (406, format!("only the following media types are accepted: {three}")));
    let odd = cluster.send("PATCH", &format!("{PODS}/p"), "text/plain", "{}").await;
    assert_eq!((odd.status, &odd.body()["message"]), (415, &json!("415: Unsupported Media Type")));
    let failed = json!([{"op": "test", "path": "/metadata/name", "value": "q"}]).to_string();
    let refused = cluster.send("PATCH", &format!("{PODS}/p"), "application/json-patch+json", failed).await;
    let why = "the server rejected our request due to an error in our request";
    assert_eq!((refused.status, &refused.body()["message"]), (422, &json!(why)));
}
