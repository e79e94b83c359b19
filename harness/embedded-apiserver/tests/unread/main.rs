//! Clients that do not read their answers use a limited amount of memory. This is a program of its own that
//! runs one test at a time, because it measures the memory of the whole process.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use embedded_apiserver::{Config, Limits, Running, Server, User};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// All tests measure the same process, so they run one at a time.
static ALONE: Mutex<()> = Mutex::const_new(());
/// The number of clients that do not read.
const CLIENTS: usize = 500;
/// The number of objects in an answer, and their size in bytes: 5 MiB together.
const OBJECTS: usize = 100;
const OBJECT: usize = 52_429;
/// The most memory that clients which do not read may use, in MiB: the limit for one user in docs/limits.md,
/// and their own ends of the connections, which are in this process as well.
const MOST_OF_WATCHES: u64 = 160;
const MOST_OF_LISTS: u64 = 420;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with 5 MiB of objects, and an account that may read them.
struct Cluster {
    server: Running,
    token: String,
    tls: TlsConnector,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    async fn start(limits: Limits) -> Cluster {
        let alone = ALONE.lock().await;
        drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
        let server = Server::start(Config { limits, ..Config::default() }).await.expect("a server");
        let admin = server.client(User::master("maker"));
        let objects = |kind: &str, object: serde_json::Value| {
            let request = http::Request::post(kind).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).expect("a request");
            let admin = admin.clone();
            async move { admin.request_text(request).await.expect("created") }
        };
        let account = json!({"metadata": {"name": "reader"}});
        objects("/api/v1/namespaces/default/serviceaccounts", account).await;
        let binding = json!({
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        });
        objects("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(admin.clone());
        for at in 0..OBJECTS {
            let map = json!({"metadata": {"name": format!("m{at:03}")}, "data": {"k": "x".repeat(OBJECT)}});
            let map = serde_json::from_value(map).expect("a map");
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
        let token = server.service_account_token("default", "reader", 3600).expect("a token");
        let mut roots = RootCertStore::empty();
        let authority = server.certificate_authority();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).expect("one")).expect("taken");
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Cluster { server, token, tls: TlsConnector::from(Arc::new(config)), _alone: alone }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.server.address()).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        self.tls.connect(name, stream).await.expect("a handshake")
    }

    /// Sends a request and reads only the head of the answer.
    async fn ask(&self, path: &str, accept: &str) -> (TlsStream<TcpStream>, String) {
        let mut stream = self.connect().await;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).await.expect("asked");
        let mut head = [0_u8; 400];
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut head)).await;
        let length = read.expect("an answer in time").expect("an answer");
        (stream, String::from_utf8_lossy(&head[..length]).into_owned())
    }
}

/// The memory of the process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

/// Prints the figures for a reader of the test's output.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Clients that send a request and do not read the answer. Returns how many were served, and how many MiB all
/// of them use.
async fn unread(cluster: &Cluster, path: &str, accept: &str) -> (usize, u64) {
    let before = memory();
    let (mut held, mut served, mut most) = (Vec::new(), 0, before);
    for _ in 0..CLIENTS {
        let (stream, head) = cluster.ask(path, accept).await;
        let refused = head.starts_with("HTTP/1.1 429") && head.to_lowercase().contains("retry-after: 1\r\n");
        assert!(refused || head.starts_with("HTTP/1.1 200"), "{head}");
        served += usize::from(!refused);
        held.push(stream);
        most = most.max(memory());
    }
    (served, most.saturating_sub(before))
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_are_not_read_cost_little() {
    let cluster = Cluster::start(Limits::default()).await;
    for accept in [
        "application/json",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ] {
        let (served, cost) = unread(&cluster, &format!("{MAPS}?watch=1"), accept).await;
        let form = accept.split(';').nth(1).unwrap_or(accept);
        say(&format!(
            "memory     API server: {served} watches of 5 MiB without a reader ({form}) took {cost} MiB"
        ));
        assert_eq!(served, CLIENTS);
        assert!(cost < MOST_OF_WATCHES, "{accept}: {cost} MiB");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_one_connection_that_are_not_read_cost_little() {
    const WINDOW: u32 = 65_535;
    let cluster = Cluster::start(Limits::default()).await;
    let authority = cluster.server.certificate_authority();
    let authority = reqwest::Certificate::from_pem(authority.as_bytes()).expect("a certificate");
    let client = reqwest::Client::builder()
        .tls_certs_only([authority])
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW)
        .build()
        .expect("a client");
    let before = memory();
    let url = format!("{}{MAPS}?watch=1", cluster.server.url());
    let mut held = Vec::new();
    for _ in 0..CLIENTS {
        let answer = client.get(&url).bearer_auth(&cluster.token).send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
        held.push(answer);
    }
    let cost = memory().saturating_sub(before);
    say(&format!(
        "memory     API server: {CLIENTS} watches of one connection without a reader took {cost} MiB"
    ));
    assert!(cost < MOST_OF_WATCHES, "{cost} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_not_read_are_bounded_for_each_user() {
    let cluster = Cluster::start(Limits { requests: 1000, ..Limits::default() }).await;
    let (served, cost) = unread(&cluster, MAPS, "application/json").await;
    say(&format!(
        "memory     API server: {served} of {CLIENTS} lists of 5 MiB without a reader were served and took {cost} MiB"
    ));
    assert!((40..CLIENTS).contains(&served), "{served} were served");
    assert!(cost < MOST_OF_LISTS, "{cost} MiB");
    // A client that does not read keeps no other out, and is served again after it has disconnected.
    let other = cluster.server.client(User::service_account("default", "other", ""));
    other.apiserver_version().await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_pauses_for_long_keeps_nothing_from_being_forgotten() {
    let keep = embedded_apiserver::store::Keep { events: 100, bytes: 4 << 20 };
    let cluster = Cluster::start(Limits::default()).await;
    drop(cluster);
    let alone = ALONE.lock().await;
    let server = Server::start(Config { keep, ..Config::default() }).await.expect("a server");
    let store_client = server.client(User::master("maker"));
    let maps: Api<ConfigMap> = Api::default_namespaced(store_client);
    let map = |at: usize, text: &str| -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": format!("m{at:03}")}, "data": {"k": text.repeat(OBJECT)}}),
        )
        .expect("a map")
    };
    for at in 0..OBJECTS {
        maps.create(&PostParams::default(), &map(at, "x")).await.expect("created");
    }
    // Begun, and not read to its end while everything changes.
    let watch = kube::api::WatchParams::default();
    let mut events = std::pin::pin!(maps.watch(&watch, "0").await.expect("a watch"));
    futures::StreamExt::next(&mut events).await.expect("an event").expect("an object");
    for at in 0..OBJECTS {
        maps.replace(&format!("m{at:03}"), &PostParams::default(), &map(at, "y")).await.expect("replaced");
        maps.replace(&format!("m{at:03}"), &PostParams::default(), &map(at, "z")).await.expect("replaced");
    }
    let rest = futures::StreamExt::collect::<Vec<_>>(events);
    let rest = tokio::time::timeout(Duration::from_secs(20), rest).await.expect("the watch ends");
    assert!(rest.len() < OBJECTS, "{} events of a past that is forgotten", rest.len());
    drop(alone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_at_the_limit_is_asked_to_retry_later() {
    let limits = Limits { watches: 3, connections: 6, all_connections: 9, ..Limits::default() };
    let cluster = Cluster::start(limits).await;
    let watch = format!("{MAPS}?watch=1&resourceVersion=0");
    let mut held = Vec::new();
    for _ in 0..3 {
        let (stream, head) = cluster.ask(&watch, "application/json").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        held.push(stream);
    }
    let (stream, head) = cluster.ask(&watch, "application/json").await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    assert!(head.to_lowercase().contains("retry-after: 1\r\n"), "{head}");
    assert!(head.contains("Too many requests, please try again later."), "{head}");
    held.push(stream);
    // A client that ends makes room, as soon as the server has noticed.
    drop(held.remove(0));
    let again = async {
        loop {
            let (stream, head) = cluster.ask(&watch, "application/json").await;
            if head.starts_with("HTTP/1.1 200") {
                return stream;
            }
        }
    };
    held.push(tokio::time::timeout(Duration::from_secs(20), again).await.expect("room again"));
    // More connections than a user may have: a request is rejected, and the connection closed.
    for _ in 0..2 {
        let (stream, head) = cluster.ask("/version", "application/json").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        held.push(stream);
    }
    let (mut stream, head) = cluster.ask("/version", "application/json").await;
    assert!(head.starts_with("HTTP/1.1 429") && head.to_lowercase().contains("connection: close"), "{head}");
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_connections_are_bounded() {
    let cluster = Cluster::start(Limits { all_connections: 4, ..Limits::default() }).await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(cluster.connect().await);
    }
    let mut refused = TcpStream::connect(cluster.server.address()).await.expect("a connection");
    let read = tokio::time::timeout(Duration::from_secs(20), refused.read(&mut [0_u8; 1])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "it stays open");
}
