//! Access to every path: without a credential, with an invalid one, and with that of an account without
//! rights. Also clients that do not follow the protocol.

use crate::client::Cluster;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Paths that are not resources.
const OTHERS: [&str; 16] = [
    "/",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps/v1",
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/metrics",
    "/logs",
    "/configz",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
];
/// Paths that everyone may read: `system:public-info-viewer`.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];
/// Paths that every authenticated user may read: `system:discovery`, `system:basic-user`,
/// `system:service-account-issuer-discovery`.
const KNOWN: [&str; 9] = [
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps/v1",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
    "/",
];
/// The self reviews, which are among these paths.
const REVIEWS: &str = "/selfsubject";
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// How long other clients wait for their answer at most, while some clients are slow.
const SOON: Duration = Duration::from_secs(10);

/// The credential of an account without rights.
const WITHOUT_RIGHTS: &str = "that of an account without rights";

/// Prints the figures for a reader of the test's output.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Every path that exists: for each discovered resource its list, one object and its subresources.
async fn paths(cluster: &Cluster) -> Vec<String> {
    let mut all: Vec<String> = OTHERS.iter().map(|path| (*path).to_owned()).collect();
    let groups = cluster.ask("GET", "/apis", None).await.body();
    let versions = groups["groups"].as_array().into_iter().flatten().flat_map(|group| {
        group["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|version| version["groupVersion"].as_str())
    });
    let roots = versions.map(|version| format!("/apis/{version}")).chain(["/api/v1".to_owned()]);
    for root in roots.collect::<Vec<_>>() {
        let resources = cluster.ask("GET", &root, None).await.body();
        for resource in resources["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            let place =
                if resource["namespaced"] == Value::Bool(true) { "/namespaces/kube-system" } else { "" };
            match name.split_once('/') {
                Some((of, sub)) => all.push(format!("{root}{place}/{of}/x/{sub}")),
                None => {
                    all.push(format!("{root}{place}/{name}"));
                    all.push(format!("{root}{place}/{name}/x"));
                    all.push(format!("{root}/{name}?watch=1&timeoutSeconds=1"));
                }
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_valid_credential_are_rejected() {
    let (cluster, elsewhere) = (Cluster::start().await, Cluster::start().await);
    let account = |cluster: Cluster| async move {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        cluster.ask("POST", accounts, Some(json!({"metadata": {"name": "nobody"}}))).await;
        let given = cluster.ask("POST", &format!("{accounts}/nobody/token"), Some(json!({"spec": {}}))).await;
        (cluster, given.body()["status"]["token"].as_str().expect("a token").to_owned())
    };
    let (cluster, token) = account(cluster).await;
    let (_elsewhere, foreign) = account(elsewhere).await;
    // An account that was deleted and created again is another account.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    cluster.ask("POST", accounts, Some(json!({"metadata": {"name": "gone"}}))).await;
    let given = cluster.ask("POST", &format!("{accounts}/gone/token"), Some(json!({"spec": {}}))).await;
    let ended = given.body()["status"]["token"].as_str().expect("a token").to_owned();
    cluster.ask("DELETE", &format!("{accounts}/gone"), None).await;
    cluster.ask("POST", accounts, Some(json!({"metadata": {"name": "gone"}}))).await;
    let elsewhere = json!({"spec": {"audiences": ["elsewhere"]}});
    let given = cluster.ask("POST", &format!("{accounts}/nobody/token"), Some(elsewhere)).await;
    let for_others = given.body()["status"]["token"].as_str().expect("a token").to_owned();
    // The server allows a minute of clock skew.
    let expired = cluster.server.service_account_token("default", "nobody", -120).expect("a token");
    let strangers: [(&str, Option<&str>); 8] = [
        ("one that has expired", Some(&expired)),
        ("none", None),
        (WITHOUT_RIGHTS, Some(&token)),
        ("one of another cluster", Some(&foreign)),
        ("one of an account that is gone", Some(&ended)),
        ("one for others", Some(&for_others)),
        ("a made up one", Some("0123456789abcdef")),
        ("an empty one", Some("")),
    ];
    let (all, url) = (paths(&cluster).await, cluster.server.url());
    let before =
        cluster.ask("GET", "/api/v1/nodes", None).await.body()["metadata"]["resourceVersion"].clone();
    let (mut requests, mut let_in) = (0, Vec::new());
    for path in &all {
        let read = |names: &[&str]| names.contains(&path.as_str());
        let of_oneself = path.contains(REVIEWS);
        for method in METHODS {
            for (who, token) in strangers {
                let mut request = cluster.anonymous.request(method.clone(), format!("{url}{path}"));
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                if !matches!(method, Method::GET | Method::HEAD) {
                    request = request.header("Content-Type", "application/json").body("{}");
                }
                let status = request.send().await.expect("an answer").status().as_u16();
                requests += 1;
                let shut = match token {
                    None => status == 403 || read(&PUBLIC),
                    Some(_) if who == WITHOUT_RIGHTS => {
                        status == 403 || read(&PUBLIC) || read(&KNOWN) || of_oneself
                    }
                    Some(_) => status == 401,
                };
                if !shut {
                    let_in.push(format!("{method} {path} with {who}: {status}"));
                }
            }
        }
    }
    let after = cluster.ask("GET", "/api/v1/nodes", None).await.body()["metadata"]["resourceVersion"].clone();
    say(&format!(
        "access     API server: {} paths, {requests} requests of strangers, {} let in",
        all.len(),
        let_in.len()
    ));
    assert!(let_in.is_empty(), "{}", let_in.join("\n"));
    assert_eq!(before, after, "a request has changed something");
    assert!(all.len() > 150, "only {} paths", all.len());
}

/// A TLS connection to the server without a client certificate.
async fn connect(cluster: &Cluster) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = cluster.server.certificate_authority();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate")).expect("taken");
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(cluster.server.address()).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_oversized_and_smuggled_requests_do_nothing_to_anybody() {
    let cluster = Cluster::start().await;
    let given = cluster.ask(
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        Some(json!({"spec": {}})),
    );
    let token = given.await.body()["status"]["token"].as_str().expect("a token").to_owned();
    let mut slow = Vec::new();
    for _ in 0..50 {
        slow.push(TcpStream::connect(cluster.server.address()).await.expect("a connection"));
    }
    let mut dawdling = Vec::new();
    for part in
        ["", "GET ", "POST /api HTTP/1.1\r\nHost: x\r\n", "POST /api HTTP/1.1\r\nContent-Length: 99\r\n\r\n"]
    {
        for _ in 0..10 {
            let mut stream = connect(&cluster).await;
            stream.write_all(part.as_bytes()).await.expect("written");
            dawdling.push(stream);
        }
    }
    let hidden = format!("GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    let with = |more: &str| {
        let head = "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer nobody\r\n";
        format!("{head}{more}\r\n0\r\n\r\n{hidden}")
    };
    let odd = [
        with("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        with("Content-Length: 0\r\nContent-Length: 44\r\n"),
        with("Content-Length: +0\r\n"),
        with("Content-Length: -1\r\n"),
        with("Content-Length: 18446744073709551616\r\n"),
        with("Transfer-Encoding: xchunked\r\n"),
        with("Transfer-Encoding: chunked, identity\r\n"),
        with("Content-Length : 0\r\n"),
        with("X-A: b\r\n Content-Length: 0\r\n"),
        with(&"X-A: b\r\n".repeat(10_000)),
        with(&format!("X-A: {}\r\n", "b".repeat(1 << 20))),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1 << 20)),
        "GET /version HTTP/3.0\r\nHost: x\r\n\r\n".to_owned(),
        "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
    ];
    let mut served = Vec::new();
    for text in &odd {
        let mut stream = connect(&cluster).await;
        // It may be rejected before it was sent completely.
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(SOON, stream.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer);
        if read.is_err() || answer.contains("HTTP/1.1 2") {
            served.push(format!("{}...: {answer}", text.chars().take(160).collect::<String>()));
        }
    }
    let began = Instant::now();
    assert_eq!(cluster.ask("GET", "/readyz", None).await.status, 200);
    say(&format!(
        "access     API server: {} odd requests next to {} slow ones, {} served; others waited {} ms",
        odd.len(),
        slow.len() + dawdling.len(),
        served.len(),
        began.elapsed().as_millis()
    ));
    assert!(served.is_empty(), "{}", served.join("\n"));
    assert!(began.elapsed() < SOON);
}
