//! Figures, not verdicts: `cargo bench -p embedded-apiserver`.
//!
//! Measures the time from start to first answer; the creation and change of nodes, and their memory; and
//! updates of nodes to a hundred watchers, each with a connection of its own, which check that they have
//! missed none.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print its figures")]

use std::time::{Duration, Instant};

use embedded_apiserver::{Config, Running, Server, User};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use reqwest::{Certificate, Client, Identity};
use serde_json::json;

const WATCHERS: usize = 100;
const UPDATES: u32 = 10_000;
/// The number of nodes that are updated in turn.
const UPDATED: u32 = 100;

#[tokio::main]
async fn main() {
    drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
    println!("{:<52} {:>10} {:>10} {:>10}", "", "time", "CPU", "peak");
    first_answer().await;
    for count in [500, 5000] {
        nodes(count).await;
    }
    forms(5000).await;
    fan_out().await;
}

fn client(server: &Running) -> Client {
    let credential = server.credential(&User::admin()).expect("a credential");
    let pem = format!("{}{}", credential.certificate, credential.key);
    Client::builder()
        .tls_certs_only([
            Certificate::from_pem(server.certificate_authority().as_bytes()).expect("a certificate")
        ])
        .identity(Identity::from_pem(pem.as_bytes()).expect("an identity"))
        .build()
        .expect("a client")
}

/// A measured part of the work.
struct Stretch {
    began: Instant,
    used: Duration,
}

impl Stretch {
    fn begin() -> Stretch {
        Stretch { began: Instant::now(), used: used() }
    }

    fn show(&self, what: &str) {
        println!(
            "{what:<52} {:>7.1} ms {:>7.0} ms {:>6} MiB",
            self.began.elapsed().as_secs_f64() * 1000.0,
            used().saturating_sub(self.used).as_secs_f64() * 1000.0,
            peak_mebibytes()
        );
    }
}

/// The processor time of this process, in user mode and in the kernel.
fn used() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The most memory this process has had, in MiB.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|text| text.parse::<u64>().ok());
    kibibytes.unwrap_or_default() / 1024
}

async fn first_answer() {
    let stretch = Stretch::begin();
    let server = Server::start(Config::default()).await.expect("the server starts");
    stretch.show("server started");
    let answer = client(&server).get(format!("{}/readyz", server.url())).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    stretch.show("server started and a first answer over TLS");
    server.shutdown().await;
}

fn node(name: &str) -> Node {
    Node { metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }, ..Node::default() }
}

async fn nodes(count: usize) {
    let server = Server::start(Config::default()).await.expect("the server starts");
    let nodes: Api<Node> = Api::all(server.client(User::admin()));
    let stretch = Stretch::begin();
    let names: Vec<String> = (0..count).map(|at| format!("node-{at}")).collect();
    let created = futures::stream::iter(&names).for_each_concurrent(32, |name| {
        let nodes = nodes.clone();
        async move { drop(nodes.create(&PostParams::default(), &node(name)).await.expect("created")) }
    });
    created.await;
    stretch.show(&format!("{count} nodes created"));
    // The writes of a cloud controller manager for each node: provider id and labels, addresses, taint.
    let initialised = futures::stream::iter(&names).for_each_concurrent(32, |name| {
        let nodes = nodes.clone();
        async move {
            let params = PatchParams::default();
            let spec = json!({"spec": {"providerID": format!("bench://{name}")}, "metadata": {"labels": {"zone": "a"}}});
            nodes.patch(name, &params, &Patch::Merge(spec)).await.expect("patched");
            let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
            nodes.patch_status(name, &params, &Patch::Strategic(status)).await.expect("patched");
            nodes.patch(name, &params, &Patch::Merge(json!({"spec": {"taints": null}}))).await.expect("patched");
        }
    });
    let stretch = Stretch::begin();
    initialised.await;
    stretch.show(&format!("{count} nodes patched three times each"));
    let listing = || {
        let accepted = "application/vnd.kubernetes.protobuf";
        let request =
            client(&server).get(format!("{}/api/v1/nodes", server.url())).header("accept", accepted);
        async move { request.send().await.expect("an answer").bytes().await.expect("a list").len() }
    };
    for times in ["first", "again"] {
        let stretch = Stretch::begin();
        let length = listing().await;
        stretch.show(&format!("{count} nodes listed in protobuf, {times} ({} KiB)", length >> 10));
    }
    server.shutdown().await;
}

/// The status that a kubelet reports for its node, in the size of a real one.
fn full_status() -> serde_json::Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": format!("Kubelet{kind}"),
            "message": format!("kubelet has sufficient {kind} available")})
    };
    let image = |at: u32| {
        json!({"names": [format!("registry.example.com/system/component-{at}@sha256:{}", "0".repeat(64)),
            format!("registry.example.com/system/component-{at}:v1.36.2")], "sizeBytes": 31_457_280 + at})
    };
    json!({"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"},
        "allocatable": {"cpu": "7900m", "memory": "31Gi", "pods": "110", "ephemeral-storage": "90Gi"},
        "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
            condition("PIDPressure", "False"), condition("Ready", "True")],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "node"}],
        "nodeInfo": {"machineID": "0", "systemUUID": "0", "bootID": "0", "kernelVersion": "6.12.0",
            "osImage": "Debian GNU/Linux 13", "containerRuntimeVersion": "containerd://2.2.0",
            "kubeletVersion": "v1.36.2", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"},
        "images": (0..8).map(image).collect::<Vec<_>>()})
}

/// Requests the same list in every form that clients use. Each form has a client with an open connection.
async fn forms(count: usize) {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let server = Server::start(Config::default()).await.expect("the server starts");
    let nodes: Api<Node> = Api::all(server.client(User::admin()));
    let names: Vec<String> = (0..count).map(|at| format!("node-{at}")).collect();
    let made = futures::stream::iter(&names).for_each_concurrent(32, |name| {
        let nodes = nodes.clone();
        async move {
            nodes.create(&PostParams::default(), &node(name)).await.expect("created");
            let status = Patch::Strategic(json!({"status": full_status()}));
            nodes.patch_status(name, &PatchParams::apply("kubelet"), &status).await.expect("patched");
        }
    });
    made.await;
    let client = client(&server);
    let list = async |what: &str, accept: &str| {
        let request = client.get(format!("{}/api/v1/nodes", server.url())).header("accept", accept);
        let stretch = Stretch::begin();
        let answer = request.send().await.expect("an answer");
        let form = answer.headers()["content-type"].to_str().unwrap_or_default().to_owned();
        let length = answer.bytes().await.expect("a list").len();
        assert!(form.starts_with(accept.split(';').next().unwrap_or_default()), "{what}: {form}");
        stretch.show(&format!("{count} nodes, {what} ({} KiB)", length >> 10));
    };
    let partial = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for times in ["first", "again"] {
        list(&format!("JSON, {times}"), "application/json").await;
        list(&format!("table, {times}"), "application/json;as=Table;g=meta.k8s.io;v=v1").await;
        list(&format!("metadata in JSON, {times}"), &format!("application/json;{partial}")).await;
        list(&format!("metadata in protobuf, {times}"), &format!("{PROTOBUF};{partial}")).await;
        list(&format!("protobuf, {times}"), PROTOBUF).await;
    }
    list("metadata in protobuf, after protobuf", &format!("{PROTOBUF};{partial}")).await;
    server.shutdown().await;
}

async fn fan_out() {
    let server = Server::start(Config::default()).await.expect("the server starts");
    let nodes: Api<Node> = Api::all(server.client(User::admin()));
    for at in 0..UPDATED {
        nodes.create(&PostParams::default(), &node(&format!("node-{at}"))).await.expect("created");
    }
    let url = format!("{}/api/v1/nodes?watch=1&resourceVersion={}", server.url(), server.revision());
    let clients: Vec<_> = (0..WATCHERS).map(|_| client(&server)).collect();
    let stretch = Stretch::begin();
    let watchers: Vec<_> = clients.iter().map(|client| tokio::spawn(watch(client.get(&url)))).collect();
    for at in 0..UPDATES {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"at": at.to_string()}}}));
        let name = format!("node-{}", at % UPDATED);
        nodes.patch(&name, &PatchParams::default(), &patch).await.expect("patched");
    }
    stretch.show(&format!("{UPDATES} updates written"));
    for watcher in watchers {
        watcher.await.expect("a watcher that missed nothing");
    }
    stretch.show(&format!("and read by {WATCHERS} watchers over TLS, none missed"));
    server.shutdown().await;
}

/// Reads a watch up to its last update; every update has to come, once and in order.
async fn watch(request: reqwest::RequestBuilder) {
    const MARK: &[u8] = br#""annotations":{"at":""#;
    let mut chunks = request.send().await.expect("an answer").bytes_stream();
    let (mut expected, mut rest) = (0, Vec::new());
    while expected < UPDATES {
        rest.extend_from_slice(&chunks.next().await.expect("the watch continues").expect("a chunk"));
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in rest[..end].split_inclusive(|byte| *byte == b'\n') {
            let at = line.windows(MARK.len()).position(|part| part == MARK).expect("an update");
            let digits = line[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            assert_eq!(number, expected, "an update was lost, or came twice");
            expected += 1;
        }
        rest.drain(..end);
    }
}
