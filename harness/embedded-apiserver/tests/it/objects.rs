//! Objects from creation to deletion, for cases that the recordings do not contain.

use serde_json::{Value, json};

use crate::client::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_keeps_nothing() {
    let cluster = Cluster::start().await;
    let before = cluster.server.revision();
    let body = json!({"metadata": {"name": "a"}});
    let made = cluster.ask("POST", &format!("{MAPS}?dryRun=All"), Some(body.clone())).await;
    assert_eq!((made.status, made.body()["metadata"]["name"].clone()), (201, json!("a")));
    let refused = cluster.ask("POST", &format!("{MAPS}?dryRun=Some"), Some(body)).await;
    assert_eq!(refused.status, 422);
    assert_eq!(cluster.ask("GET", &format!("{MAPS}/a"), None).await.status, 404);
    assert_eq!(cluster.server.revision(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_waits_for_finalizers_and_minds_preconditions() {
    let cluster = Cluster::start().await;
    let body = json!({"metadata": {"name": "a", "finalizers": ["example.com/wait"]}});
    let made = cluster.ask("POST", MAPS, Some(body)).await.body();
    let path = format!("{MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}});
    let refused = cluster.ask("DELETE", &path, Some(wrong)).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let uid = made["metadata"]["uid"].as_str().expect("a uid");
    assert!(refused.body()["message"].as_str().expect("a message").contains(uid));
    let foreground = json!({"propagationPolicy": "Foreground"});
    let waiting = cluster.ask("DELETE", &path, Some(foreground)).await.body();
    assert_eq!(waiting["metadata"]["finalizers"], json!(["example.com/wait", "foregroundDeletion"]));
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let free = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(cluster.send("PATCH", &path, "application/merge-patch+json", free).await.status, 200);
    assert_eq!(cluster.ask("GET", &path, None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_changes_nothing_writes_nothing() {
    let cluster = Cluster::start().await;
    let made =
        cluster.ask("POST", MAPS, Some(json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))).await.body();
    let again = cluster.ask("PUT", &format!("{MAPS}/a"), Some(made.clone())).await.body();
    assert_eq!(again["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_warned_of_or_refused() {
    let cluster = Cluster::start().await;
    let body = json!({"metadata": {"name": "a"}, "dato": {}});
    let made = cluster.ask("POST", MAPS, Some(body.clone())).await;
    assert_eq!((made.status, made.warnings), (201, vec!["299 - \"unknown field \\\"dato\\\"\"".to_owned()]));
    let strict = cluster.ask("PUT", &format!("{MAPS}/a?fieldValidation=Strict"), Some(body)).await;
    assert_eq!(
        (strict.status, strict.body()["message"].clone()),
        (
            400,
            json!(
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dato\""
            )
        )
    );
    let patch = |mode: &str| {
        let path = format!("{MAPS}/a?fieldValidation={mode}");
        let cluster = &cluster;
        async move { cluster.send("PATCH", &path, "application/merge-patch+json", r#"{"dato":{}}"#).await.status }
    };
    assert_eq!((patch("Strict").await, patch("Warn").await, patch("Odd").await), (422, 200, 422));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_says_who_owns_its_fields() {
    let cluster = Cluster::start().await;
    let made = cluster
        .ask(
            "POST",
            &format!("{MAPS}?fieldManager=me"),
            Some(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})),
        )
        .await;
    let entry = made.body()["metadata"]["managedFields"][0].clone();
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("me"), &json!("Update")));
    assert_eq!(entry["fieldsV1"]["f:data"]["f:k"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_one_under_both_groups() {
    let cluster = Cluster::start().await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n"}, "message": "words",
        "reason": "Tested", "type": "Normal", "count": 2, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    let made = cluster.ask("POST", "/api/v1/namespaces/default/events", Some(event)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dn";
    let list = cluster.ask("GET", path, None).await.body();
    let item = &list["items"][0];
    assert_eq!(
        (&item["note"], &item["regarding"]["name"], &item["deprecatedCount"]),
        (&json!("words"), &json!("n"), &json!(2))
    );
    assert_eq!(item["message"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_namespaces_are_furnished_and_some_never_go() {
    let cluster = Cluster::start().await;
    assert_eq!(
        cluster.ask("POST", "/api/v1/namespaces", Some(json!({"metadata": {"name": "x"}}))).await.status,
        201
    );
    for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        assert_eq!(
            cluster.ask("GET", &format!("/api/v1/namespaces/x/{path}"), None).await.status,
            200,
            "{path}"
        );
    }
    let refused = cluster.ask("DELETE", "/api/v1/namespaces/kube-system", None).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.body()["message"],
        "namespaces \"kube-system\" is forbidden: this namespace may not be deleted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_a_service_account_of_its_own_gets_the_default_one_and_its_token() {
    let cluster = Cluster::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
    let made = cluster.ask("POST", pods, Some(pod)).await.body();
    assert_eq!(made["spec"]["serviceAccountName"], "default", "{made}");
    let volume = made["spec"]["volumes"][0]["name"].as_str().expect("a volume");
    assert!(
        volume.starts_with("kube-api-access-") && volume.len() == "kube-api-access-".len() + 5,
        "{volume}"
    );
    assert_eq!(made["spec"]["containers"][0]["volumeMounts"][0]["name"], volume);
    let stranger = json!({
        "metadata": {"name": "q"},
        "spec": {"serviceAccountName": "absent", "containers": [{"name": "c", "image": "x:1"}]},
    });
    let refused = cluster.ask("POST", pods, Some(stranger)).await;
    assert_eq!(
        refused.body()["message"],
        "pods \"q\" is forbidden: error looking up service account default/absent: serviceaccount \"absent\" not found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_without_a_domain_is_refused_at_creation_and_at_a_change() {
    let cluster = Cluster::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let map = |finalizer: &str| json!({"metadata": {"name": "f", "finalizers": [finalizer]}});
    let refused = cluster.ask("POST", maps, Some(map("mycloud-lb"))).await;
    assert_eq!(refused.status, 422);
    let cause = refused.body()["details"]["causes"][0].clone();
    assert_eq!(cause["field"], "metadata.finalizers[0]");
    assert_eq!(cause["message"], format!("Invalid value: \"mycloud-lb\": {why}"));
    assert_eq!(cluster.ask("POST", maps, Some(map("orphan"))).await.status, 201);
    let wrong = r#"{"metadata":{"finalizers":["mycloud-lb"]}}"#;
    let path = format!("{maps}/f");
    let changed = cluster.send("PATCH", &path, "application/merge-patch+json", wrong).await;
    assert_eq!(changed.status, 422, "{}", changed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_that_is_kept_for_others_is_made_listed_changed_and_deleted() {
    let cluster = Cluster::start().await;
    let groups = [
        "autoscaling/v1",
        "autoscaling/v2",
        "batch/v1",
        "networking.k8s.io/v1",
        "policy/v1",
        "storage.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "node.k8s.io/v1",
        "resource.k8s.io/v1",
        "apps/v1",
        "apiregistration.k8s.io/v1",
        "flowcontrol.apiserver.k8s.io/v1",
    ];
    let mut tried = 0;
    for group in groups {
        let listed = cluster.ask("GET", &format!("/apis/{group}"), None).await.body();
        let resources = listed["resources"].as_array().expect("resources").clone();
        let own = ["deployments", "daemonsets", "replicasets", "csinodes"];
        for resource in resources.iter().filter(|one| !one["name"].as_str().unwrap_or("/").contains('/')) {
            let plural = resource["name"].as_str().expect("a name");
            if own.contains(&plural) {
                continue;
            }
            let place = if resource["namespaced"] == true { "namespaces/default/" } else { "" };
            let all = format!("/apis/{group}/{place}{plural}");
            let mut body = json!({"apiVersion": group, "kind": resource["kind"], "metadata": {"name": "one", "labels": {"a": "b"}}});
            if plural == "jobs" {
                let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
                body["spec"] = json!({"template": {"spec": spec}});
            }
            let made = cluster.ask("POST", &all, Some(body)).await;
            assert_eq!(made.status, 201, "{plural}: {}", made.text);
            let one = format!("{all}/one");
            let labels = r#"{"metadata":{"labels":{"a":"c"}}}"#;
            let changed = cluster.send("PATCH", &one, "application/strategic-merge-patch+json", labels).await;
            assert_eq!(changed.status, 200, "{plural}: {}", changed.text);
            let listed = cluster.ask("GET", &format!("{all}?labelSelector=a=c"), None).await.body();
            assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{plural}");
            if resources.iter().any(|sub| sub["name"] == format!("{plural}/status").as_str()) {
                let answer = cluster.ask("GET", &format!("{one}/status"), None).await;
                assert_eq!(answer.status, 200, "{plural}: {}", answer.text);
            }
            let gone = format!("{one}?propagationPolicy=Background");
            assert_eq!(cluster.ask("DELETE", &gone, None).await.status, 200, "{plural}");
            if plural == "volumeattributesclasses" {
                // A class that is in use is kept by its finalizer, which a controller removes.
                let released = r#"{"metadata":{"finalizers":null}}"#;
                cluster.send("PATCH", &one, "application/merge-patch+json", released).await;
            }
            assert_eq!(cluster.ask("GET", &one, None).await.status, 404, "{plural}");
            tried += 1;
        }
    }
    assert_eq!(tried, 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spec_of_a_stateful_set_has_its_defaults_and_a_change_its_generation() {
    let cluster = Cluster::start().await;
    let all = "/apis/apps/v1/namespaces/default/statefulsets";
    let spec = json!({"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    let made =
        cluster.ask("POST", all, Some(json!({"metadata": {"name": "one"}, "spec": spec}))).await.body();
    assert_eq!(made["spec"]["replicas"], 1);
    assert_eq!(made["spec"]["template"]["spec"]["restartPolicy"], "Always");
    assert_eq!(made["metadata"]["generation"], 1);
    let one = format!("{all}/one");
    let status = r#"{"status":{"replicas":1},"spec":{"replicas":5}}"#;
    let kind = "application/merge-patch+json";
    let updated = cluster.send("PATCH", &format!("{one}/status"), kind, status).await.body();
    assert_eq!((&updated["status"]["replicas"], &updated["spec"]["replicas"]), (&json!(1), &json!(1)));
    let scaled =
        cluster.send("PATCH", &one, kind, r#"{"status":{"replicas":9},"spec":{"replicas":2}}"#).await.body();
    assert_eq!((&scaled["status"]["replicas"], &scaled["metadata"]["generation"]), (&json!(1), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_the_priority_of_its_class_and_may_only_name_classes_that_are_there() {
    let cluster = Cluster::start().await;
    let pod = |name: &str, class: &str| {
        json!({"metadata": {"name": name}, "spec": {"priorityClassName": class,
            "containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    assert_eq!(cluster.ask("POST", pods, Some(pod("a", "mine"))).await.status, 403);
    let class = json!({"metadata": {"name": "mine"}, "value": 1234, "preemptionPolicy": "Never"});
    assert_eq!(cluster.ask("POST", classes, Some(class)).await.status, 201);
    let made = cluster.ask("POST", pods, Some(pod("a", "mine"))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(made.body()["spec"]["priority"], 1234);
    assert_eq!(made.body()["spec"]["preemptionPolicy"], "Never");
    let critical = cluster.ask("POST", pods, Some(pod("b", "system-node-critical"))).await.body();
    assert_eq!(critical["spec"]["priority"], 2_000_001_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn priority_levels_and_api_services_have_their_defaults() {
    let cluster = Cluster::start().await;
    let flow = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let level = json!({"metadata": {"name": "one"}, "spec": {"type": "Limited",
        "limited": {"lendablePercent": 5, "limitResponse": {"type": "Queue"}}}});
    let made = cluster.ask("POST", &format!("{flow}/prioritylevelconfigurations"), Some(level)).await.body();
    let limited = json!({"nominalConcurrencyShares": 30, "lendablePercent": 5, "limitResponse": {
        "type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}});
    assert_eq!((&made["spec"]["limited"], &made["metadata"]["generation"]), (&limited, &json!(1)));
    let exempt = json!({"metadata": {"name": "two"}, "spec": {"type": "Exempt"}});
    let made = cluster.ask("POST", &format!("{flow}/prioritylevelconfigurations"), Some(exempt)).await.body();
    assert_eq!(made["spec"]["exempt"], json!({"nominalConcurrencyShares": 0, "lendablePercent": 0}));
    let schema =
        json!({"metadata": {"name": "one"}, "spec": {"priorityLevelConfiguration": {"name": "one"}}});
    let made = cluster.ask("POST", &format!("{flow}/flowschemas"), Some(schema)).await.body();
    assert_eq!(made["spec"]["matchingPrecedence"], 1000);
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com", "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 15}});
    let made = cluster.ask("POST", services, Some(service)).await.body();
    assert_eq!(made["status"]["conditions"][0]["reason"], "Local", "{made}");
    let refused = cluster
        .ask(
            "PUT",
            &format!("{services}/v1.example.com"),
            Some(json!({"metadata": {"name": "v1.example.com"}})),
        )
        .await;
    assert_eq!(refused.status, 422, "an update names the version it builds on: {}", refused.text);
}
