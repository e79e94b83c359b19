//! The Docker network of a run, which contains only its machines and its fake cloud.

use super::error::ClusterError;
use super::record::Machine;
use super::topology::Families;
use crate::images::{Engine, EngineError, RunId};
use bollard::Docker;
use bollard::models::{
    EndpointIpamConfig, EndpointSettings, Ipam, IpamConfig, NetworkConnectRequest, NetworkCreateRequest,
    NetworkDisconnectRequest,
};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Time limit for creating or removing a network.
const LIMIT: Duration = Duration::from_secs(60);
/// How often to look for a free address range.
const ATTEMPTS: u32 = 5;
/// Docker's name for the option that sets the packet size.
const MTU_OPTION: &str = "com.docker.network.driver.mtu";

/// Creates the run's network, named [`RunId::name`], unless it exists; so it can be created before the cluster, for a
/// cloud that starts at the same time as the cluster.
///
/// It gets its own IPv6 range, as kind's network does; if the engine has no IPv6, `families` decides whether IPv4 alone
/// is enough. Its IPv4 range is a fixed one that Docker has chosen, so that a machine that was switched off can have its
/// old address again: Docker assigns specific addresses only if the range was specified too.
///
/// # Errors
/// The engine has no free address range left, or no IPv6 although both families are needed.
pub(super) async fn ensure_network(
    engine: &Engine,
    run: &RunId,
    families: Families,
) -> Result<String, ClusterError> {
    let name = run.name();
    if exists(engine, &name).await? {
        return Ok(name);
    }
    let mtu = default_mtu(engine).await;
    let mut outcome = attempt(engine, run, families, mtu.as_deref()).await;
    for _ in 1..ATTEMPTS {
        // Another network may have taken the free range in the meantime.
        if !outcome
            .as_ref()
            .is_err_and(|error| error.message().is_some_and(|words| words.contains("overlaps")))
        {
            break;
        }
        outcome = attempt(engine, run, families, mtu.as_deref()).await;
    }
    match outcome {
        Ok(()) => Ok(name),
        // Another part of this run was faster.
        Err(error) if error.is_conflict() => Ok(name),
        Err(error) if families == Families::Both && speaks_of_ipv6(&error) => Err(ClusterError::Unavailable {
            what: "a network with IPv4 and IPv6".to_owned(),
            why: format!("the Docker engine cannot create it ({})", error.message().unwrap_or_default()),
            way_out: "enable IPv6 in the kernel and in the engine, or choose a topology with one family".to_owned(),
        }),
        Err(error) if error.message().is_some_and(|words| words.contains("fully subnetted")) => {
            Err(ClusterError::Unavailable {
                what: format!("network {name}"),
                why: "Docker has no free address range left for another network".to_owned(),
                way_out: "remove unused networks: 'ccm-conformance clean' for those of earlier runs, 'docker network \
                          prune' for all"
                    .to_owned(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes a network; it is not an error if it is already gone.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<(), EngineError> {
    match engine.call("remove network", name, LIMIT, engine.docker().remove_network(name)).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Assigns a switched-off machine its addresses again, which Docker may have given to another one.
pub(super) async fn reserve(engine: &Engine, network: &str, machine: &Machine) -> Result<(), EngineError> {
    let docker = engine.docker();
    let leave = NetworkDisconnectRequest { container: machine.container_id.clone(), force: Some(true) };
    let leaving = docker.disconnect_network(network, leave);
    engine.call("disconnect machine", &machine.name, LIMIT, leaving).await?;
    let addresses = EndpointIpamConfig {
        ipv4_address: machine.ipv4.map(|ip| ip.to_string()),
        ipv6_address: machine.ipv6.map(|ip| ip.to_string()),
        link_local_ips: None,
    };
    let join = NetworkConnectRequest {
        container: machine.container_id.clone(),
        endpoint_config: Some(EndpointSettings { ipam_config: Some(addresses), ..Default::default() }),
    };
    engine.call("connect machine", &machine.name, LIMIT, docker.connect_network(network, join)).await
}

async fn exists(engine: &Engine, name: &str) -> Result<bool, EngineError> {
    match engine.call("inspect network", name, LIMIT, engine.docker().inspect_network(name, None)).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn attempt(
    engine: &Engine,
    run: &RunId,
    families: Families,
    mtu: Option<&str>,
) -> Result<(), EngineError> {
    let ipv4 = free_subnet(engine, run).await?;
    let both = Ranges { ipv4: ipv4.clone(), ipv6: Some(ula_subnet(run)) };
    match create(engine, run, mtu, both).await {
        Err(error) if families == Families::Ipv4 && speaks_of_ipv6(&error) => {
            tracing::debug!(%error, "IPv6 is not available, so the network has only IPv4");
            create(engine, run, mtu, Ranges { ipv4, ipv6: None }).await
        }
        other => other,
    }
}

/// Address ranges of a network; Docker chooses the IPv4 one if none is specified.
#[derive(Clone, Debug, Default)]
struct Ranges {
    ipv4: Option<String>,
    ipv6: Option<String>,
}

/// A range that Docker would assign, taken from a network that is created for that and removed again; `None` if another
/// client was faster or the engine does not report it.
async fn free_subnet(engine: &Engine, run: &RunId) -> Result<Option<String>, EngineError> {
    let name = run.name();
    create(engine, run, None, Ranges::default()).await?;
    let found =
        engine.call("inspect network", &name, LIMIT, engine.docker().inspect_network(&name, None)).await?;
    remove(engine, &name).await?;
    let ranges = found.ipam.and_then(|ipam| ipam.config).unwrap_or_default();
    Ok(ranges.into_iter().filter_map(|range| range.subnet).find(|subnet| !subnet.contains(':')))
}

async fn create(engine: &Engine, run: &RunId, mtu: Option<&str>, ranges: Ranges) -> Result<(), EngineError> {
    let name = run.name();
    let masquerade = ("com.docker.network.bridge.enable_ip_masquerade".to_owned(), "true".to_owned());
    let config = [ranges.ipv4, ranges.ipv6.clone()]
        .into_iter()
        .flatten()
        .map(|subnet| IpamConfig { subnet: Some(subnet), ..Default::default() });
    let options = mtu.map(|mtu| (MTU_OPTION.to_owned(), mtu.to_owned())).into_iter().chain([masquerade]);
    let request = NetworkCreateRequest {
        name: name.clone(),
        driver: Some("bridge".to_owned()),
        enable_ipv6: Some(ranges.ipv6.is_some()),
        ipam: Some(Ipam { config: Some(config.collect()), ..Default::default() }),
        options: Some(options.collect::<HashMap<_, _>>()),
        labels: Some(run.labels("network")),
        ..Default::default()
    };
    let creating = |docker: Docker| async move { docker.create_network(request).await };
    engine.make("create network", &name, LIMIT, creating).await.map(drop)
}

/// The packet size of Docker's default network, which an administrator may have lowered for a reason.
async fn default_mtu(engine: &Engine) -> Option<String> {
    let asked = engine.docker().inspect_network("bridge", None);
    let bridge = engine.call("inspect network", "bridge", LIMIT, asked).await.ok()?;
    bridge.options?.remove(MTU_OPTION)
}

/// A private IPv6 range (RFC 4193) that depends only on the run.
fn ula_subnet(run: &RunId) -> String {
    let hash = Sha256::digest(run.as_str().as_bytes());
    let word = |at: usize| u16::from_be_bytes([hash[at], hash[at + 1]]);
    let address = Ipv6Addr::new(0xfd00 | u16::from(hash[0]), word(1), word(3), word(5), 0, 0, 0, 0);
    format!("{address}/64")
}

fn speaks_of_ipv6(error: &EngineError) -> bool {
    error.message().is_some_and(|words| {
        let words = words.to_lowercase();
        words.contains("ipv6") || words.contains("ip6tables")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_private_range_of_its_own() {
        let subnet = |id: &str| ula_subnet(&id.parse().expect("a run id"));
        assert_eq!(subnet("abcdefgh"), subnet("abcdefgh"));
        assert_ne!(subnet("abcdefgh"), subnet("abcdefgi"));
        assert!(subnet("abcdefgh").starts_with("fd") && subnet("abcdefgh").ends_with("::/64"));
    }
}
