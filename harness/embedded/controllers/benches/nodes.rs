//! How long thousands of simulated nodes take to register, and what they cost. Prints figures; asserts nothing of time.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::net::IpAddr;
use std::time::{Duration, Instant};

use embedded_apiserver::{Config, Server, User};
use embedded_controllers::{Clients, CloudProvider, Controllers, NodeSpec, PodCidrs, PodRange, Settings};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counts: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![500, 5000] } else { counts };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
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
        PodCidrs::Allocated(vec![PodRange { first: IpAddr::from([10, 0, 0, 0]), prefix: 8, node_prefix: 24 }]);
    let client = server.client(User::admin());
    let started = Instant::now();
    let running = Controllers::start(Clients::same(client.clone()), settings).await?;
    until_ready(&client, count).await?;
    let registered = started.elapsed();
    println!("nodes={count} registered_and_ready={registered:.2?} memory={} MiB", memory_mib()?);
    let before = server.revision();
    let cpu = cpu_seconds()?;
    let mut beats = tokio::time::interval(Duration::from_secs(10));
    beats.tick().await;
    beats.tick().await;
    println!(
        "nodes={count} in_10s: writes={} processor={:.2}s memory={} MiB",
        server.revision().saturating_sub(before),
        cpu_seconds()? - cpu,
        memory_mib()?
    );
    running.stop().await;
    server.shutdown().await;
    Ok(())
}

/// Waits until every Node is ready and has its Lease.
async fn until_ready(client: &Client, count: usize) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let mut again = tokio::time::interval(Duration::from_millis(200));
    loop {
        again.tick().await;
        if leases.list_metadata(&ListParams::default()).await?.items.len() < count {
            continue;
        }
        let all = nodes.list(&ListParams::default()).await?;
        let clean = |node: &&Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            taints.is_none_or(Vec::is_empty) && node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some())
        };
        if all.items.iter().filter(clean).count() >= count {
            return Ok(());
        }
    }
}

/// The memory this process holds now.
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
