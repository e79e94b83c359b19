//! Figures, not verdicts: `cargo bench -p ccm-conformance --bench scale [-- COUNT...]`.
//!
//! Starts an embedded cluster with the given number of Nodes. The reference CCM initialises them; it runs in
//! a process of its own, with flags that let it work as fast as it can. The fake cloud runs in this process,
//! next to the cluster.

#![expect(clippy::print_stdout, reason = "a benchmark is there to print its figures")]

use anyhow::{Context, Result, bail};
use embedded_cluster::{Cluster, ClusterSpec, NodeIp};
use futures::TryStreamExt;
use harness_clouds::{Address, Cloud, CloudRecord, CloudSpec, Credential, Instance, InstanceState, Place};
use harness_clusters::images::RunId;
use harness_config::CloudSource;
use k8s_openapi::api::core::v1::{NodeAddress, NodeSpec};
use kube::api::{Request, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::Deserialize;
use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// The taint that waits for a CCM.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The flags of the CCM. With its defaults (20 requests a second, one Node at a time) the benchmark would
/// measure only those limits.
const FAST: &[&str] = &["--concurrent-node-syncs=32", "--kube-api-qps=100000", "--kube-api-burst=100000"];
/// The longest time that the largest cluster may take.
const LIMIT: Duration = Duration::from_secs(1800);
/// The token with which the CCM authenticates to the cloud.
const TOKEN: &str = "token-of-the-benchmark";
/// The first address of an instance; the others follow.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 64, 0, 1]);

#[tokio::main]
async fn main() -> Result<()> {
    let asked: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if asked.is_empty() { vec![500, 5000] } else { asked };
    println!(
        "{:>6} {:>12} {:>12} {:>12} {:>10} {:>12} {:>10}",
        "nodes", "registered", "initialised", "cluster CPU", "CCM CPU", "cluster peak", "CCM peak"
    );
    let mut figures = Vec::new();
    for count in counts {
        let took = tokio::time::timeout(LIMIT, measure(count))
            .await
            .with_context(|| format!("{count} nodes were not initialised in {LIMIT:?}"))??;
        figures.push((count, took));
    }
    if let [(few, first), .., (many, last)] = figures.as_slice() {
        let factor = |of: fn(&Took) -> Duration| of(last).as_secs_f64() / of(first).as_secs_f64();
        println!(
            "{many} nodes took {:.1} times as long as {few} (goal for 5000 and 500: at most 11), and {:.1} times the CPU",
            factor(|took| took.time),
            factor(|took| took.processor),
        );
    }
    Ok(())
}

/// How long it took until all Nodes were initialised, and what it cost.
struct Took {
    time: Duration,
    /// The processor time of this process and of the CCM.
    processor: Duration,
}

/// Starts a cluster with `count` Nodes and its CCM, and waits until all Nodes are initialised and ready.
async fn measure(count: u32) -> Result<Took> {
    let folder = tempfile::tempdir()?;
    let (native, on_message): (_, harness_clouds::OnMessage) =
        (CloudSource::Dialect("native".to_owned()), Arc::new(|_| ()));
    let (run, place) = (&RunId::fresh(), Place::LOOPBACK);
    let cloud = harness_clouds::start(CloudSpec {
        run,
        cloud: &native,
        place,
        replicas: &[],
        folder: folder.path(),
        on_message: &on_message,
    })
    .await?;
    fill(&cloud.attach()?, count).await?;
    let cpu = used("self")?;
    let begin = Instant::now();
    let mut spec = ClusterSpec::awaiting_cloud(count);
    for machine in &mut spec.machines {
        machine.node_ip = NodeIp::Unset;
    }
    let cluster = Cluster::start(spec).await?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig()?)?;
    let mut child = start(&kubeconfig, cloud.record(), folder.path())?;
    let process = child.id().context("the CCM ended at once")?.to_string();
    let seen = tokio::select! {
        seen = initialised(&cluster, count, begin) => seen?,
        ended = child.wait() => bail!("the CCM ended: {}\n{}", ended?, log_of(folder.path())),
    };
    let (own, ccms) = (used("self")?.saturating_sub(cpu), used(&process)?);
    println!(
        "{count:>6} {:>10.2} s {:>10.2} s {:>10.2} s {:>8.2} s {:>8} MiB {:>6} MiB",
        seen.registered.as_secs_f64(),
        seen.initialised.as_secs_f64(),
        own.as_secs_f64(),
        ccms.as_secs_f64(),
        peak_mebibytes("self")?,
        peak_mebibytes(&process)?,
    );
    child.kill().await?;
    cluster.stop().await;
    cloud.stop().await?;
    Ok(Took { time: seen.initialised, processor: own + ccms })
}

/// Creates an instance for each machine.
async fn fill(cloud: &Cloud, count: u32) -> Result<()> {
    let instance = |index: u32| Instance {
        id: format!("i-{index}"),
        name: format!("node-{index}"),
        provider_id: Some(format!("native://i-{index}")),
        instance_type: "m1.small".into(),
        zone: format!("zone-{}", index % 3),
        region: "region-1".into(),
        addresses: vec![Address {
            kind: "InternalIP".into(),
            address: Ipv4Addr::from_bits(FIRST_ADDRESS + index).to_string(),
        }],
        labels: Default::default(),
        state: InstanceState::Running,
    };
    cloud.admit(&Credential { name: "ccm".into(), token: TOKEN.into() }).await?;
    for first in (0..count).step_by(500) {
        let some: Vec<Instance> = (first..count.min(first + 500)).map(instance).collect();
        cloud.put_instances(&some).await?;
    }
    Ok(())
}

fn start(kubeconfig: &Path, cloud: &CloudRecord, folder: &Path) -> Result<Child> {
    let log = std::fs::File::create(folder.join("ccm.log"))?;
    let child = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args([
            "reference-ccm",
            "--cloud-provider=native",
            "--configure-cloud-routes=false",
            "--secure-port=0",
        ])
        .args(FAST)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .env("NATIVE_CLOUD_ENDPOINT", &cloud.endpoint)
        .env("NATIVE_CLOUD_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    Ok(child)
}

/// Returns the end of the CCM's log.
fn log_of(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("ccm.log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// The times at which the Nodes were registered and initialised.
struct Timing {
    registered: Duration,
    initialised: Duration,
}

/// Watches until all Nodes are initialised and ready.
async fn initialised(cluster: &Cluster, count: u32, begin: Instant) -> Result<Timing> {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()?)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let count = usize::try_from(count)?;
    let (mut registered, mut there, mut done) = (None, HashSet::new(), HashSet::new());
    let request = Request::new("/api/v1/nodes").watch(&WatchParams::default(), "0")?;
    let mut changes = pin!(client.request_events::<Slim>(request).await?);
    while let Some(change) = changes.try_next().await? {
        let (WatchEvent::Added(node) | WatchEvent::Modified(node)) = change else { continue };
        if node.is_done() {
            done.insert(node.metadata.name.clone());
        }
        there.insert(node.metadata.name);
        if there.len() == count {
            registered.get_or_insert_with(|| begin.elapsed());
        }
        if done.len() == count {
            let initialised = begin.elapsed();
            return Ok(Timing { registered: registered.unwrap_or(initialised), initialised });
        }
    }
    bail!("the watch ended at {} of {count} Nodes", done.len())
}

/// The fields of a Node that the benchmark reads. Reading all of it would take a good part of the measured time.
#[derive(Clone, Debug, Deserialize)]
struct Slim {
    metadata: SlimMetadata,
    #[serde(default)]
    spec: NodeSpec,
    #[serde(default)]
    status: SlimStatus,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimMetadata {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SlimStatus {
    #[serde(default)]
    addresses: Vec<NodeAddress>,
    #[serde(default)]
    conditions: Vec<SlimCondition>,
}

#[derive(Clone, Debug, Deserialize)]
struct SlimCondition {
    r#type: String,
    status: String,
}

impl Slim {
    /// Whether the CCM has initialised the Node and its kubelet reports it as ready.
    fn is_done(&self) -> bool {
        self.spec.taints.iter().flatten().all(|taint| taint.key != UNINITIALIZED)
            && self.spec.provider_id.is_some()
            && self.status.addresses.iter().any(|address| address.type_ == "InternalIP")
            && self.status.conditions.iter().any(|one| one.r#type == "Ready" && one.status == "True")
    }
}

/// Returns the processor time of a process: in user mode and in the kernel.
fn used(process: &str) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

/// Returns the peak memory use of a process.
fn peak_mebibytes(process: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    Ok(kibibytes / 1024)
}
