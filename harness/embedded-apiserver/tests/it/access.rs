//! Access control: credentials, roles, tokens, reviews, and the audit log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embedded_apiserver::User;
use serde_json::{Value, json};

use crate::client::{Cluster, send};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn allow(cluster: &Cluster, role: Value, user: &str) {
    let name = role["metadata"]["name"].clone();
    let made = cluster.ask("POST", &format!("{RBAC}/clusterroles"), Some(role)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    let bound = cluster.ask("POST", &format!("{RBAC}/clusterrolebindings"), Some(binding)).await;
    assert_eq!(bound.status, 201, "{}", bound.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_the_administrators_group_are_refused() {
    use rcgen::{CertificateParams, DnType, KeyPair};
    let cluster = Cluster::start().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let ask = async |name: &str, group: &str, signer: &str| {
        let mut asked = CertificateParams::default();
        asked.distinguished_name.push(DnType::OrganizationName, group);
        asked.distinguished_name.push(DnType::CommonName, "jane");
        let key = KeyPair::generate().expect("a key");
        let request = asked.serialize_request(&key).and_then(|request| request.pem()).expect("a request");
        let body = json!({
            "metadata": {"name": name},
            "spec": {"request": STANDARD.encode(request), "signerName": signer, "usages": ["client auth"],
                     "username": "somebody-else", "uid": "another", "groups": ["others"]},
        });
        cluster.ask("POST", path, Some(body)).await
    };
    let client = "kubernetes.io/kube-apiserver-client";
    let refused = ask("a", "system:masters", client).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(
        refused.body()["message"],
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of kubernetes.io/kube-apiserver-client \
         signer with system:masters group is not allowed"
    );
    let taken = ask("b", "developers", client).await;
    assert_eq!(taken.status, 201);
    let spec = &taken.body()["spec"];
    let says = (&spec["username"], spec.get("uid"), spec["groups"][0].as_str());
    assert_eq!(says, (&json!("kubernetes-admin"), None, Some("kubeadm:cluster-admins")), "who asks is known");
    assert_eq!(
        ask("c", "system:masters", "example.com/signer").await.status,
        201,
        "no client trusts that signer"
    );
    let body = json!({"metadata": {"name": "d"}, "spec":
        {"request": STANDARD.encode("no request"), "signerName": client, "usages": ["client auth"]}});
    let refused = cluster.ask("POST", path, Some(body)).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_decide_and_denials_have_the_words_of_the_real_server() {
    let cluster = Cluster::start().await;
    let url = cluster.server.url();
    let jane = cluster.client(&User::authenticated("jane", &[]));
    let denied = send(
        &jane,
        &url,
        "PATCH",
        "/api/v1/nodes/n/status",
        Some("application/merge-patch+json"),
        Some(b"{}".to_vec()),
    )
    .await;
    assert_eq!(denied.status, 403);
    assert_eq!(
        denied.body()["message"],
        "nodes \"n\" is forbidden: User \"jane\" cannot patch resource \"nodes/status\" in API group \"\" at the cluster scope"
    );
    allow(
        &cluster,
        json!({"metadata": {"name": "lease"}, "rules": [
            {"verbs": ["get"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["ccm"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]},
        ]}),
        "jane",
    )
    .await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    for (path, status) in
        [(format!("{leases}/ccm"), 404), (format!("{leases}/other"), 403), (leases.to_owned(), 403)]
    {
        assert_eq!(send(&jane, &url, "GET", &path, None, None).await.status, status, "{path}");
    }
    assert_eq!(send(&jane, &url, "GET", "/metrics/x", None, None).await.status, 404);
    let denied = send(&jane, &url, "GET", "/metrics", None, None).await;
    assert_eq!(denied.body()["message"], "forbidden: User \"jane\" cannot get path \"/metrics\"");
    assert_eq!(send(&jane, &url, "GET", "/apis", None, None).await.status, 200, "discovery is for all");
    assert_eq!(send(&cluster.anonymous, &url, "GET", "/apis", None, None).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_cannot_grant_rights_that_they_lack() {
    let cluster = Cluster::start().await;
    allow(
        &cluster,
        json!({"metadata": {"name": "roles"}, "rules": [
            {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]},
        ]}),
        "jane",
    )
    .await;
    // The wildcard includes `escalate`; without it the check applies.
    allow(
        &cluster,
        json!({"metadata": {"name": "some"}, "rules": [
            {"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]},
        ]}),
        "john",
    )
    .await;
    let role = json!({"metadata": {"name": "more"}, "rules": [
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"]},
    ]});
    let path = format!("{RBAC}/clusterroles");
    let url = cluster.server.url();
    let john = cluster.client(&User::authenticated("john", &[]));
    let body = Some(role.to_string().into_bytes());
    let denied = send(&john, &url, "POST", &path, Some("application/json"), body.clone()).await;
    assert_eq!(denied.status, 403, "{}", denied.text);
    assert_eq!(
        denied.body()["message"],
        "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"john\" (groups=[\"system:authenticated\"]) \
         is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"list\"]}"
    );
    let jane = cluster.client(&User::authenticated("jane", &[]));
    assert_eq!(send(&jane, &url, "POST", &path, Some("application/json"), body).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_holds_as_long_as_its_account() {
    let cluster = Cluster::start().await;
    let url = cluster.server.url();
    let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
    cluster.ask("POST", accounts, Some(json!({"metadata": {"name": "ccm"}}))).await;
    let request = json!({"spec": {"expirationSeconds": 600}});
    let given = cluster.ask("POST", &format!("{accounts}/ccm/token"), Some(request)).await;
    assert_eq!(given.status, 201, "{}", given.text);
    let token = given.body()["status"]["token"].as_str().expect("a token").to_owned();
    let nodes = || async {
        let request = cluster.anonymous.get(format!("{url}/api/v1/nodes")).bearer_auth(&token);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a body"))
    };
    let (status, text) = nodes().await;
    assert_eq!(status, 403);
    assert!(text.contains(r#"User \"system:serviceaccount:kube-system:ccm\""#), "{text}");
    let review = json!({"spec": {"token": token}});
    let review =
        cluster.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", Some(review)).await.body();
    assert_eq!(review["status"]["authenticated"], true, "{review}");
    assert_eq!(review["status"]["user"]["groups"][1], "system:serviceaccounts:kube-system");
    let short = json!({"spec": {"expirationSeconds": 5}});
    assert_eq!(cluster.ask("POST", &format!("{accounts}/ccm/token"), Some(short)).await.status, 422);
    cluster.ask("DELETE", &format!("{accounts}/ccm"), None).await;
    assert_eq!(nodes().await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_is_rejected() {
    let (cluster, other) = (Cluster::start().await, Cluster::start().await);
    let stranger = other.server.credential(&User::master("root")).expect("a credential");
    let pem = format!("{}{}", stranger.certificate, stranger.key);
    let authority = reqwest::Certificate::from_pem(cluster.server.certificate_authority().as_bytes());
    let client = reqwest::Client::builder()
        .tls_certs_only([authority.expect("a certificate")])
        .identity(reqwest::Identity::from_pem(pem.as_bytes()).expect("an identity"))
        .build()
        .expect("a client");
    let answer = send(&client, &cluster.server.url(), "GET", "/version", None, None).await;
    assert_eq!((answer.status, answer.body()["message"].clone()), (401, json!("Unauthorized")));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_reach_only_what_is_theirs() {
    let cluster = Cluster::start().await;
    let url = cluster.server.url();
    let kubelet = cluster.client(&User::node("n1"));
    let post = |path: &'static str, body: Value| {
        let kubelet = kubelet.clone();
        let url = url.clone();
        async move {
            send(&kubelet, &url, "POST", path, Some("application/json"), Some(body.to_string().into_bytes()))
                .await
        }
    };
    assert_eq!(post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await.status, 201);
    let denied = post("/api/v1/nodes", json!({"metadata": {"name": "n2"}})).await;
    assert_eq!(
        (denied.status, denied.body()["message"].clone()),
        (403, json!("nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\""))
    );
    let get = |path: &'static str| {
        let (kubelet, url) = (kubelet.clone(), url.clone());
        async move { send(&kubelet, &url, "GET", path, None, None).await.status }
    };
    assert_eq!(get("/api/v1/nodes/n1").await, 200);
    assert_eq!(get("/api/v1/nodes").await, 403);
    assert_eq!(get("/api/v1/pods").await, 403);
    assert_eq!(get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").await, 200);
    assert_eq!(get("/api/v1/namespaces/kube-system/secrets/x").await, 403);
    assert_eq!(get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1").await, 404);
    assert_eq!(get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_in_the_log() {
    let cluster = Cluster::start().await;
    let mut reader = cluster.server.audit().watch();
    let request = cluster.anonymous.get(format!("{}/api/v1/nodes?limit=1", cluster.server.url()));
    request.header("User-Agent", "test/1").send().await.expect("an answer");
    let entries = reader.next().await;
    let entry = entries.first().expect("an entry");
    assert_eq!(
        (entry.user.as_str(), entry.code, entry.user_agent.as_str()),
        ("system:anonymous", 403, "test/1")
    );
    assert_eq!((entry.request.verb.as_str(), entry.request.resource.as_str()), ("list", "nodes"));
    assert_eq!((entry.query.as_str(), entry.authorized), ("limit=1", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_for_a_service_account_gets_its_token() {
    let cluster = Cluster::start().await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let secret = |name: &str, account: &str| {
        json!({"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
            "type": "kubernetes.io/service-account-token"})
    };
    let made = cluster.ask("POST", secrets, Some(secret("token", "default"))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let data = made.body()["data"].clone();
    let text = |key: &str| {
        let decoded = STANDARD.decode(data[key].as_str().unwrap_or_default()).unwrap_or_default();
        String::from_utf8(decoded).unwrap_or_default()
    };
    assert_eq!(text("namespace"), "kube-system");
    assert!(text("ca.crt").contains("BEGIN CERTIFICATE"));
    assert!(!made.body()["metadata"]["annotations"]["kubernetes.io/service-account.uid"].is_null());
    let review = json!({"spec": {"token": text("token")}});
    let said = cluster.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", Some(review)).await.body();
    assert_eq!(said["status"]["user"]["username"], "system:serviceaccount:kube-system:default");
    let created = cluster.ask("POST", secrets, Some(secret("other", "nobody"))).await;
    assert_eq!((created.status, created.body()["data"].is_null()), (201, true), "{}", created.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_writes_the_status_of_its_own_node_only() {
    let cluster = Cluster::start().await;
    for name in ["node-1", "node-2"] {
        let node = json!({"metadata": {"name": name}});
        assert_eq!(cluster.ask("POST", "/api/v1/nodes", Some(node)).await.status, 201);
    }
    let kubelet = cluster.client(&User::authenticated("system:node:node-1", &["system:nodes"]));
    let url = cluster.server.url();
    let patch = async |name: &str| {
        let path = format!("/api/v1/nodes/{name}/status");
        let body = br#"{"status":{"phase":"Running"}}"#.to_vec();
        send(&kubelet, &url, "PATCH", &path, Some("application/merge-patch+json"), Some(body)).await
    };
    assert_eq!(patch("node-1").await.status, 200);
    let refused = patch("node-2").await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.body()["message"],
        "nodes \"node-2\" is forbidden: node \"node-1\" is not allowed to modify node \"node-2\""
    );
}
