//! Starts a cluster, creates a Pod that runs a program of this computer, and watches it until it has ended.
//!
//! `cargo run -p embedded-cluster --example pod`

use embedded_cluster::{Cluster, ClusterSpec, Program};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{LogParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use std::error::Error;
use std::io::Write;
use std::pin::pin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let spec = ClusterSpec {
        programs: vec![Program::new("greeter:1", ["sh", "-c", "echo Hello from $(hostname)"])],
        ..ClusterSpec::of_nodes(2)
    };
    let cluster = Cluster::start(spec).await?;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "greeter"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "greeter", "image": "greeter:1"}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let mut out = std::io::stdout();
    let mut changes = pin!(watcher(pods.clone(), watcher::Config::default()).applied_objects());
    while let Some(pod) = changes.try_next().await? {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_else(|| "no node yet".to_owned());
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        writeln!(out, "greeter is {phase} on {node}")?;
        if phase == "Succeeded" {
            break;
        }
    }
    write!(out, "{}", pods.logs("greeter", &LogParams::default()).await?)?;
    cluster.stop().await;
    Ok(())
}
