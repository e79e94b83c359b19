//! Figures, not verdicts: `cargo bench -p embedded-apiserver`.
//!
//! From start to first answer; nodes created, and the memory they take; one node's updates to a hundred watchers.

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
const UPDATES: usize = 10_000;

#[tokio::main]
async fn main() {
    drop(tokio_rustls::rustls::crypto::ring::default_provider().install_default());
    first_answer().await;
    for count in [500, 5000] {
        nodes(count).await;
    }
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

/// The most memory this process has had, in MiB.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|text| text.parse::<u64>().ok());
    kibibytes.unwrap_or_default() / 1024
}

async fn first_answer() {
    let begin = Instant::now();
    let server = Server::start(Config::default()).await.expect("the server starts");
    let started = begin.elapsed();
    let answer = client(&server).get(format!("{}/readyz", server.url())).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    println!(
        "start to first answer over TLS     {:>8.1} ms (started after {:.1} ms)",
        ms(begin.elapsed()),
        ms(started)
    );
    server.shutdown().await;
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn node(name: &str) -> Node {
    Node { metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }, ..Node::default() }
}

async fn nodes(count: usize) {
    let server = Server::start(Config::default()).await.expect("the server starts");
    let nodes: Api<Node> = Api::all(server.client(User::admin()));
    let begin = Instant::now();
    let names: Vec<String> = (0..count).map(|at| format!("node-{at}")).collect();
    let created = futures::stream::iter(&names).for_each_concurrent(32, |name| {
        let nodes = nodes.clone();
        async move { drop(nodes.create(&PostParams::default(), &node(name)).await.expect("created")) }
    });
    created.await;
    let creation = begin.elapsed();
    // What a cloud controller manager does to each: provider id and labels, addresses, taint.
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
    initialised.await;
    println!(
        "{count:>5} nodes created, each patched 3x {:>8.1} ms (creation {:.1} ms), peak memory {} MiB",
        ms(begin.elapsed()),
        ms(creation),
        peak_mebibytes()
    );
    server.shutdown().await;
}

async fn fan_out() {
    let server = Server::start(Config::default()).await.expect("the server starts");
    let nodes: Api<Node> = Api::all(server.client(User::admin()));
    nodes.create(&PostParams::default(), &node("n")).await.expect("created");
    let url = format!("{}/api/v1/nodes?watch=1&resourceVersion={}", server.url(), server.revision());
    let client = client(&server);
    let begin = Instant::now();
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let request = client.get(&url);
            tokio::spawn(async move {
                let mut chunks = request.send().await.expect("an answer").bytes_stream();
                let mut seen = 0;
                while seen < UPDATES {
                    let chunk = chunks.next().await.expect("the watch goes on").expect("a chunk");
                    seen += chunk.iter().filter(|byte| **byte == b'\n').count();
                }
                seen
            })
        })
        .collect();
    for at in 0..UPDATES {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"at": at.to_string()}}}));
        nodes.patch("n", &PatchParams::default(), &patch).await.expect("patched");
    }
    let written = begin.elapsed();
    let mut events = 0;
    for watcher in watchers {
        events += watcher.await.expect("a watcher");
    }
    println!(
        "{UPDATES} updates to {WATCHERS} watchers over TLS {:>8.1} ms (written after {:.1} ms), {events} events, {} lost, peak memory {} MiB",
        ms(begin.elapsed()),
        ms(written),
        WATCHERS * UPDATES - events,
        peak_mebibytes()
    );
    server.shutdown().await;
}
