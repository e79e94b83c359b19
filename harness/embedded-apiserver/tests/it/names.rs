//! The names of definitions: a definition cannot take a name of a kind that Kubernetes stores itself.

use reqwest::Method;
use serde_json::json;

use crate::escalations::{JSON, MERGE, RBAC, bound, everything, with_attacker};

#[tokio::test(flavor = "multi_thread")]
async fn no_definition_takes_over_what_kubernetes_stores() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (cluster, token) = with_attacker().await;
    let operator = json!({"metadata": {"name": "operator"}, "rules": [{"apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions", "customresourcedefinitions/status"], "verbs": ["*"]}]});
    let mut binding = bound("ClusterRole", "operator");
    binding["metadata"]["name"] = "operator".into();
    for (path, body) in [("clusterroles", operator), ("clusterrolebindings", binding)] {
        assert_eq!(cluster.ask("POST", &format!("{RBAC}/{path}"), Some(body)).await.status, 201);
    }
    let url = cluster.server.url();
    let send = async |method: &str, path: &str, kind: &str, body: String| {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let asked = cluster.anonymous.request(method, format!("{url}{path}")).bearer_auth(&token);
        let answer = asked.header("Content-Type", kind).body(body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    };
    let others = "/apis/rbac.authorization.k8s.io/v2";
    let mut served = Vec::new();
    for (plural, kind) in
        [("clusterroles", "Wide"), ("wides", "ClusterRole"), ("clusterroles", "ClusterRole")]
    {
        let name = format!("{plural}.rbac.authorization.k8s.io");
        let names = json!({"plural": plural, "singular": "wide", "kind": kind, "listKind": "WideList"});
        let anything =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({"metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "yes"}},
            "spec": {"group": "rbac.authorization.k8s.io", "scope": "Cluster", "names": names,
                "versions": [{"name": "v2", "served": true, "storage": true, "schema": anything}]}});
        let (status, text) = send("POST", DEFINITIONS, JSON, definition.to_string()).await;
        assert_eq!(status, 201, "{text}");
        // The same applies to names in its status.
        let forged = json!({"status": {"acceptedNames": names, "conditions": [
            {"type": "Established", "status": "True", "reason": "me", "message": "me", "lastTransitionTime": null}]}});
        let status = format!("{DEFINITIONS}/{name}/status");
        send("PATCH", &status, MERGE, forged.to_string()).await;
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v2", "kind": kind, "metadata": {"name": "more"},
            "rules": everything()});
        served.push(send("POST", &format!("{others}/{plural}"), JSON, role.to_string()).await);
        served.push(send("GET", &format!("{others}/{plural}"), JSON, String::new()).await);
        send("DELETE", &format!("{DEFINITIONS}/{name}"), JSON, String::new()).await;
    }
    let wider: Vec<_> = served.iter().filter(|(status, _)| (200..300).contains(status)).collect();
    assert!(wider.is_empty(), "{wider:?}");
    let roles = cluster.ask("GET", &format!("{RBAC}/clusterroles/cluster-admin"), None).await;
    assert_eq!(roles.status, 200, "{}", roles.text);
}
