//! How long thousands of simulated nodes take to register, and what they cost. Prints figures; does not
//! assert times.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use embedded_apiserver::{Config, Server, User};
use embedded_controllers::{Clients, CloudProvider, Controllers, NodeSpec, PodCidrs, PodRange, Settings};
use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counts: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![500, 5000] } else { counts };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "{:>6} {:>20} {:>10} {:>10} {:>16} {:>14}",
        "nodes", "registered and ready", "CPU", "memory", "writes in 10 s", "CPU in 10 s"
    );
    for count in counts {
        runtime.block_on(measure(count))?;
    }
    Ok(())
}

async fn measure(count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(Config::default()).await?;
    let mut settings = Settings::new(server.address(), server.certificate_authority());
    settings.nodes = (0..count)
        .map(|index| NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new(format!("node-{index}")) })
        .collect();
    settings.pod_cidrs =
        PodCidrs::Allocated(vec![PodRange { cluster: "10.0.0.0/8".parse()?, node_prefix: 24 }]);
    let client = server.client(User::admin());
    let (started, used) = (Instant::now(), cpu_seconds()?);
    let running = Controllers::start(Clients::same(client.clone()), settings).await?;
    until_ready(&client, count).await?;
    let registered = started.elapsed();
    let (before, cpu, memory) = (server.revision(), cpu_seconds()?, memory_mib()?);
    let mut beats = tokio::time::interval(Duration::from_secs(10));
    beats.tick().await;
    beats.tick().await;
    println!(
        "{count:>6} {:>18.2} s {:>8.2} s {memory:>6} MiB {:>16} {:>12.2} s",
        registered.as_secs_f64(),
        cpu - used,
        server.revision().saturating_sub(before),
        cpu_seconds()? - cpu,
    );
    running.stop().await;
    server.shutdown().await;
    Ok(())
}

/// Watches until every Node is ready and has its Lease.
async fn until_ready(client: &Client, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<PartialObjectMeta<Lease>> = Api::namespaced(client.clone(), "kube-node-lease");
    let clean = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
        taints.is_none_or(Vec::is_empty) && node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some())
    };
    let mut nodes = pin!(watcher(nodes, watcher::Config::default()).applied_objects());
    let mut ready = HashSet::new();
    while ready.len() < count {
        let node = nodes.try_next().await?.ok_or("the watch of Nodes ended")?;
        if clean(&node) {
            ready.insert(node.name_any());
        }
    }
    let mut leases = pin!(watcher(leases, watcher::Config::default()).applied_objects());
    let mut held = HashSet::new();
    while held.len() < count {
        held.insert(leases.try_next().await?.ok_or("the watch of Leases ended")?.name_any());
    }
    Ok(())
}

/// The current memory of this process.
fn memory_mib() -> Result<u64, std::io::Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    Ok(kibibytes / 1024)
}

/// The processor time this process has used.
fn cpu_seconds() -> Result<f64, std::io::Error> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|index| fields.get(*index)?.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
