//! Ways for a service account to get more rights than it has: none of them works.
//!
//! The account has the rights of a CCM, and may also write roles, bindings, accounts and certificate
//! requests, like that of an operator. After each attempt, the test checks its rights and tries to read a
//! secret of another account.

use crate::client::Cluster;
use crate::doors::say;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
/// The content of the secret that the account must not read.
const TREASURE: &str = "dHJlYXN1cmU=";
/// The account's own user name.
const SELF: &str = "system:serviceaccount:a:attacker";

/// The rights of the account.
fn own_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update", "delete"]},
        {"apiGroups": [""], "resources": ["nodes/status", "services/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create", "get", "patch", "update"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
        {"apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
            "verbs": ["create", "get", "list", "update", "patch"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
            "verbs": ["create", "get", "update", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "delete"],
            "resourceNames": ["mine"]},
    ])
}

/// An attempt: description, method, path, content type and body.
type Way = (&'static str, &'static str, String, &'static str, String);

pub(crate) fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
}

pub(crate) fn bound(kind: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": "a", "name": "attacker"}],
    })
}

/// Attempts with roles and bindings.
fn by_grants() -> Vec<Way> {
    let roles = format!("{RBAC}/clusterroles");
    let bindings = format!("{RBAC}/clusterrolebindings");
    let role = |rules: Value| json!({"metadata": {"name": "more"}, "rules": rules}).to_string();
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let paths = json!([{"nonResourceURLs": ["*"], "verbs": ["*"]}]);
    let escalate =
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["escalate"]}]);
    let sub = json!([{"apiGroups": [""], "resources": ["nodes/*"], "verbs": ["get"]}]);
    let wider = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let aggregated = json!({"metadata": {"name": "more"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]}});
    let own = format!("{roles}/attacker");
    let all = everything();
    let with_all = json!({"rules": all});
    let add = |value: &Value| json!([{"op": "add", "path": "/rules/-", "value": value}]).to_string();
    let subject = json!({"kind": "ServiceAccount", "namespace": "a", "name": "attacker"});
    let in_system = |what: &str| format!("{RBAC}/namespaces/kube-system/{what}");
    let applied = |kind: &str, rest: Value| {
        let mut whole =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "more"}});
        for (key, value) in rest.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        whole.to_string()
    };
    let way = |what, method, path: &str, kind, body: String| (what, method, path.to_owned(), kind, body);
    vec![
        way("a role of everything", "POST", &roles, JSON, role(all.clone())),
        way("a role of secrets", "POST", &roles, JSON, role(secrets.clone())),
        way("a role of all paths", "POST", &roles, JSON, role(paths)),
        way("a role to escalate", "POST", &roles, JSON, role(escalate)),
        way("a role of all subresources", "POST", &roles, JSON, role(sub)),
        way("a role without its names", "POST", &roles, JSON, role(wider)),
        way("a role that gathers others", "POST", &roles, JSON, aggregated.to_string()),
        way("a role as a trial", "POST", &format!("{roles}?dryRun=All"), JSON, role(all.clone())),
        way("a role of a made up name", "POST", &roles, JSON,
            json!({"metadata": {"generateName": "more-"}, "rules": all}).to_string()),
        way("a role elsewhere", "POST", &in_system("roles"), JSON, role(secrets)),
        way("its own role, put", "PUT", &own, JSON,
            json!({"metadata": {"name": "attacker"}, "rules": all}).to_string()),
        way("its own role, merged", "PATCH", &own, MERGE, with_all.to_string()),
        way("its own role, merged as its kind is", "PATCH", &own, STRATEGIC, with_all.to_string()),
        way("its own role, added to", "PATCH", &own, JSON_PATCH, add(&all[0])),
        way("its own role, copied into", "PATCH", &own, JSON_PATCH, json!([
            {"op": "replace", "path": "/rules/0/verbs", "value": ["*"]},
            {"op": "copy", "from": "/rules/0/verbs", "path": "/rules/0/resources"},
        ]).to_string()),
        way("its own role, applied", "PATCH", &format!("{own}?fieldManager=m&force=true"), APPLY, json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "attacker"},
            "rules": all}).to_string()),
        way("its own role, gathering", "PATCH", &own, MERGE,
            json!({"aggregationRule": {"clusterRoleSelectors": [{}]}}).to_string()),
        way("a role, applied", "PATCH", &format!("{roles}/more?fieldManager=m"), APPLY,
            applied("ClusterRole", json!({"rules": all}))),
        way("a role, put where none is", "PUT", &format!("{roles}/more"), JSON, role(all.clone())),
        way("the administrators' role", "POST", &bindings, JSON, bound("ClusterRole", "cluster-admin").to_string()),
        way("the role admin", "POST", &bindings, JSON, bound("ClusterRole", "admin").to_string()),
        way("the role edit", "POST", &bindings, JSON, bound("ClusterRole", "edit").to_string()),
        way("a kubelet's role", "POST", &bindings, JSON, bound("ClusterRole", "system:node").to_string()),
        way("a role that is not there", "POST", &bindings, JSON, bound("ClusterRole", "absent").to_string()),
        way("a role of another kind", "POST", &bindings, JSON, bound("Role", "cluster-admin").to_string()),
        way("a binding, applied", "PATCH", &format!("{bindings}/more?fieldManager=m"), APPLY,
            applied("ClusterRoleBinding", bound("ClusterRole", "cluster-admin"))),
        way("a binding elsewhere", "POST", &in_system("rolebindings"), JSON,
            bound("ClusterRole", "cluster-admin").to_string()),
        way("a binding here", "POST", &format!("{RBAC}/namespaces/a/rolebindings"), JSON,
            bound("ClusterRole", "cluster-admin").to_string()),
        way("another subject of a binding", "PATCH", &format!("{bindings}/cluster-admin"), JSON_PATCH,
            json!([{"op": "add", "path": "/subjects/-", "value": subject}]).to_string()),
        way("other subjects of a binding", "PATCH", &format!("{bindings}/cluster-admin"), MERGE,
            json!({"subjects": [subject]}).to_string()),
        way("its binding to another role", "PATCH", &format!("{bindings}/attacker"), MERGE,
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})
                .to_string()),
    ]
}

/// Attempts with other objects and paths.
fn by_objects() -> Vec<Way> {
    let way = |what, method, path: &str, body: Value| (what, method, path.to_owned(), JSON, body.to_string());
    let request = json!({"spec": {}});
    let get = |what, path: &str| (what, "GET", path.to_owned(), JSON, String::new());
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    let csr = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let map = json!({"metadata": {"name": "x", "namespace": "kube-system"}});
    let review =
        json!({"spec": {"user": SELF, "groups": ["system:masters"], "resourceAttributes": {"verb": "*"}}});
    vec![
        way("a token of another's account", "POST", &format!("{accounts}/default/token"), request.clone()),
        way("a token of its own", "POST", "/api/v1/namespaces/a/serviceaccounts/attacker/token", request),
        way(
            "a secret with a token",
            "POST",
            SECRETS,
            json!({"metadata": {"name": "t", "annotations":
            {"kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"}),
        ),
        way(
            "approving a request",
            "PUT",
            &format!("{csr}/asked/approval"),
            json!({"metadata": {"name": "asked"},
            "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "me", "message": "me"}]}}),
        ),
        way(
            "a certificate of its own making",
            "PUT",
            &format!("{csr}/asked/status"),
            json!({"metadata":
            {"name": "asked"}, "status": {"certificate": STANDARD.encode("x")}}),
        ),
        way(
            "a Pod elsewhere",
            "POST",
            "/api/v1/namespaces/kube-system/pods",
            json!({"metadata": {"name": "p"},
            "spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]}}),
        ),
        way(
            "a command in a Pod",
            "POST",
            "/api/v1/namespaces/kube-system/pods/p/exec?command=id",
            Value::Null,
        ),
        way(
            "a bound Pod",
            "POST",
            "/api/v1/namespaces/kube-system/pods/p/binding",
            json!({"metadata":
            {"name": "p"}, "target": {"name": "n"}}),
        ),
        get("a Pod's log", "/api/v1/namespaces/kube-system/pods/p/log"),
        get("a kubelet's port", "/api/v1/nodes/n/proxy/configz"),
        way("a namespace", "POST", "/api/v1/namespaces", json!({"metadata": {"name": "b"}})),
        way("a namespace's end", "PUT", "/api/v1/namespaces/a/finalize", json!({"metadata": {"name": "a"}})),
        way("another body than the path", "POST", "/api/v1/namespaces/a/configmaps", map),
        way(
            "another kind than the path",
            "POST",
            "/api/v1/namespaces/a/serviceaccounts",
            json!({"kind": "Secret",
            "apiVersion": "v1", "metadata": {"name": "x"}}),
        ),
        way(
            "another group than the path",
            "POST",
            &format!("{RBAC}/clusterroles"),
            json!({"apiVersion": "v1",
            "kind": "ClusterRole", "metadata": {"name": "more"}, "rules": everything()}),
        ),
        way(
            "a review of tokens",
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            json!({"spec": {"token": "x"}}),
        ),
        way("a review of others", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review),
        way(
            "a webhook",
            "POST",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            json!({"metadata": {"name": "w"}}),
        ),
        way(
            "a priority",
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"metadata": {"name": "p"},
            "value": 1_000_000_000}),
        ),
        get("the secrets", SECRETS),
        get("one secret", &format!("{SECRETS}/treasure")),
        get("all secrets", "/api/v1/secrets"),
        get("the secrets, watched", &format!("{SECRETS}?watch=1&timeoutSeconds=1")),
        get("the secrets, watched by path", "/api/v1/watch/namespaces/kube-system/secrets"),
        get("the secrets by way of its own", "/api/v1/namespaces/a/../kube-system/secrets"),
        get("the same, encoded", "/api/v1/namespaces/a%2f..%2fkube-system/secrets"),
        get("the same, encoded twice", "/api/v1/namespaces/a%252f..%252fkube-system/secrets"),
        get("two slashes before", "//api/v1/namespaces/kube-system/secrets"),
        get("two slashes within", "/api/v1/namespaces/kube-system//secrets"),
        get("a slash behind", &format!("{SECRETS}/")),
        get("an encoded slash", "/api/v1/namespaces/kube-system/secrets%2ftreasure"),
        get(
            "the secrets as something of a service",
            "/api/v1/namespaces/kube-system/services/x/proxy/../../secrets",
        ),
        get("capitals", "/API/V1/namespaces/kube-system/secrets"),
        get("a name that holds two", "/api/v1/namespaces/kube-system/configmaps/mine%2f..%2ftheirs"),
        get("another's by its name", "/api/v1/namespaces/kube-system/configmaps/theirs"),
        get(
            "others by the absence of a name",
            "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name!%3Dx",
        ),
        get(
            "another's by the field twice",
            "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3Dtheirs&fieldSelector=metadata.name%3Dmine",
        ),
        (
            "an end by a path to watch",
            "DELETE",
            "/api/v1/watch/namespaces/kube-system/configmaps/mine".to_owned(),
            JSON,
            String::new(),
        ),
        (
            "all configurations' end",
            "DELETE",
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            JSON,
            String::new(),
        ),
    ]
}

/// Attempts with headers that impersonate another user.
fn by_headers() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let one = |name: &'static str, value: &str| vec![(name, value.to_owned())];
    vec![
        ("as the administrator", one("Impersonate-User", "kubernetes-admin")),
        ("as a kubelet", one("Impersonate-User", "system:node:n")),
        ("as another's account", one("Impersonate-User", "system:serviceaccount:kube-system:default")),
        (
            "as itself among the administrators",
            vec![("Impersonate-User", SELF.to_owned()), ("Impersonate-Group", "system:masters".to_owned())],
        ),
        ("among the administrators", one("Impersonate-Group", "system:masters")),
        ("with another's id", one("Impersonate-Uid", "1")),
        ("with more said of it", one("Impersonate-Extra-Scopes", "admin")),
        (
            "as two at once",
            vec![("Impersonate-User", SELF.to_owned()), ("Impersonate-User", "kubernetes-admin".to_owned())],
        ),
        (
            "by a proxy's word",
            vec![("X-Remote-User", "admin".to_owned()), ("X-Remote-Group", "system:masters".to_owned())],
        ),
        ("by another proxy's word", one("X-Forwarded-User", "admin")),
        ("by another method", one("X-HTTP-Method-Override", "GET")),
        ("by another path", one("X-Original-URL", "/healthz")),
    ]
}

/// Modified versions of the account's token.
fn forged(token: &str, other: &str) -> Vec<(&'static str, String)> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else { return Vec::new() };
    let encoded = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let decoded = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let said = String::from_utf8(decoded).unwrap_or_default();
    let admin = encoded(
        &said.replace("attacker", "default").replace("\"namespace\":\"a\"", "\"namespace\":\"kube-system\""),
    );
    vec![
        ("without a signature", format!("{}.{claims}.", encoded(r#"{"alg":"none"}"#))),
        ("of a secret that all know", format!("{}.{claims}.{signature}", encoded(r#"{"alg":"HS256"}"#))),
        ("of another account", format!("{header}.{admin}.{signature}")),
        ("without a signature", format!("{header}.{claims}.")),
        ("of two parts", format!("{header}.{claims}")),
        ("of an empty signature", format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode([0_u8; 64]))),
        ("of another cluster", other.to_owned()),
        ("with something behind", format!("{token}.x")),
    ]
}

async fn token_of(cluster: &Cluster, namespace: &str, name: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let given = cluster.ask("POST", &path, Some(json!({"spec": {}}))).await;
    given.body()["status"]["token"].as_str().expect("a token").to_owned()
}

/// A cluster with the account, and its token.
pub(crate) async fn with_attacker() -> (Cluster, String) {
    let cluster = Cluster::start().await;
    let made = async |path: &str, body: Value| {
        let answer = cluster.ask("POST", path, Some(body)).await;
        assert_eq!(answer.status, 201, "{path}: {}", answer.text);
    };
    made("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    made("/api/v1/namespaces/a/serviceaccounts", json!({"metadata": {"name": "attacker"}})).await;
    made(SECRETS, json!({"metadata": {"name": "treasure"}, "data": {"t": TREASURE}})).await;
    for name in ["mine", "theirs"] {
        let map = json!({"metadata": {"name": name}, "data": {"is": name}});
        made("/api/v1/namespaces/kube-system/configmaps", map).await;
    }
    made(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "attacker"}, "rules": own_rules()}))
        .await;
    let mut binding = bound("ClusterRole", "attacker");
    binding["metadata"]["name"] = "attacker".into();
    made(&format!("{RBAC}/clusterrolebindings"), binding).await;
    // A rejection may contain the secret, so its text is checked.
    let seen = cluster.ask("GET", SECRETS, None).await.text;
    assert!(seen.contains(TREASURE), "{seen}");
    let seen = cluster.ask("GET", "/api/v1/namespaces/kube-system/configmaps/theirs", None).await.text;
    assert!(seen.contains("theirs\"}"), "{seen}");
    let token = token_of(&cluster, "a", "attacker").await;
    (cluster, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_account_gets_more_rights_than_it_has() {
    let (cluster, token) = with_attacker().await;
    let other = with_attacker().await.1;
    let url = cluster.server.url();
    let send = async |request: RequestBuilder| {
        let answer = request.header("Accept", JSON).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    };
    let request = |method: &str, path: &str| {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        cluster.anonymous.request(method, format!("{url}{path}"))
    };
    let (mut ways, mut wider) = (0, Vec::new());
    let mut judge = |what: String, (status, text): (u16, String)| {
        ways += 1;
        if (200..300).contains(&status) || text.contains(TREASURE) || text.contains("theirs\"}") {
            wider.push(format!("{what}: {status} {text}"));
        }
    };
    for (what, method, path, kind, body) in by_grants().into_iter().chain(by_objects()) {
        let asked = request(method, &path).bearer_auth(&token).header("Content-Type", kind).body(body);
        judge(what.to_owned(), send(asked).await);
    }
    for (what, headers) in by_headers() {
        let asked = request("GET", SECRETS).bearer_auth(&token);
        let asked = headers.into_iter().fold(asked, |asked, (name, value)| asked.header(name, value));
        judge(what.to_owned(), send(asked).await);
    }
    for (what, forged) in forged(&token, &other) {
        let answer = send(request("GET", "/api/v1/nodes").bearer_auth(&forged)).await;
        assert_eq!(answer.0, 401, "a token {what}: {}", answer.1);
        judge(format!("a token {what}"), answer);
    }
    for path in
        ["/api/v1/nodes?access_token=", "/api/v1/nodes?token=", "/api/v1/nodes?authorization=Bearer%20"]
    {
        judge(format!("a token in {path}"), send(request("GET", &format!("{path}{token}"))).await);
    }
    // The account still has its own rights, and no others.
    let nodes = send(request("GET", "/api/v1/nodes").bearer_auth(&token)).await;
    assert_eq!(nodes.0, 200, "{}", nodes.1);
    let mine = "/api/v1/namespaces/kube-system/configmaps/mine";
    assert_eq!(send(request("GET", mine).bearer_auth(&token)).await.0, 200);
    let review = json!({"spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}});
    let asked = request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").bearer_auth(&token);
    let asked = send(asked.header("Content-Type", JSON).body(review.to_string())).await;
    assert!(!asked.1.contains("\"allowed\":true"), "{}", asked.1);
    say(&format!(
        "access     escalations: {ways} ways of a service account to more rights, {} of them work",
        wider.len()
    ));
    assert!(ways >= 60, "only {ways}");
    assert!(wider.is_empty(), "{}", wider.join("\n"));
}
