//! The Docker network of a run: its machines and its fake cloud are on it, and nothing else.

use super::error::ClusterError;
use super::topology::Families;
use crate::images::{Engine, EngineError, RunId};
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// How long making or removing a network may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Docker's name for the option that sets the size of packets.
const MTU_OPTION: &str = "com.docker.network.driver.mtu";

/// Makes the run's network, named [`RunId::name`], unless it is there; so it can be made before the cluster, for a
/// cloud that starts while the cluster does.
///
/// It gets an IPv6 range of its own as kind's network does; without IPv6 in the engine, `families` decides whether
/// IPv4 alone will do.
///
/// # Errors
/// The engine has no free address range left, or no IPv6 where both families are needed.
pub async fn ensure_network(engine: &Engine, run: &RunId, families: Families) -> Result<String, ClusterError> {
    let name = run.name();
    if exists(engine, &name).await? {
        return Ok(name);
    }
    let mtu = default_mtu(engine).await;
    let both = create(engine, run, mtu.clone(), Some(ula_subnet(run))).await;
    let outcome = match both {
        Err(error) if families == Families::Ipv4 && speaks_of_ipv6(&error) => {
            tracing::debug!(%error, "no IPv6 here, the network has IPv4 alone");
            create(engine, run, mtu, None).await
        }
        other => other,
    };
    match outcome {
        Ok(()) => Ok(name),
        // Somebody of this run was quicker.
        Err(error) if error.is_conflict() => Ok(name),
        Err(error) if families == Families::Both && speaks_of_ipv6(&error) => Err(ClusterError::NotObservable {
            what: "a network with IPv4 and IPv6".to_owned(),
            why: format!("the Docker engine cannot make it ({})", error.message().unwrap_or_default()),
        }),
        Err(error) if error.message().is_some_and(|words| words.contains("fully subnetted")) => Err(ClusterError::Usage {
            what: format!("network {name}"),
            why: "Docker has no free address range left for another network".to_owned(),
            way_out: "remove unused ones: 'ccm-conformance clean' for those of earlier runs, 'docker network prune' for all"
                .to_owned(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Removes a network; one that is gone already is fine.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<(), EngineError> {
    match engine.call("remove network", name, LIMIT, engine.docker().remove_network(name)).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

async fn exists(engine: &Engine, name: &str) -> Result<bool, EngineError> {
    match engine.call("inspect network", name, LIMIT, engine.docker().inspect_network(name, None)).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn create(
    engine: &Engine,
    run: &RunId,
    mtu: Option<String>,
    ipv6_subnet: Option<String>,
) -> Result<(), EngineError> {
    let name = run.name();
    let masquerade = ("com.docker.network.bridge.enable_ip_masquerade".to_owned(), "true".to_owned());
    let options = mtu.map(|mtu| (MTU_OPTION.to_owned(), mtu)).into_iter().chain([masquerade]);
    let request = NetworkCreateRequest {
        name: name.clone(),
        driver: Some("bridge".to_owned()),
        enable_ipv6: Some(ipv6_subnet.is_some()),
        ipam: ipv6_subnet.map(|subnet| Ipam {
            config: Some(vec![IpamConfig { subnet: Some(subnet), ..Default::default() }]),
            ..Default::default()
        }),
        options: Some(options.collect::<HashMap<_, _>>()),
        labels: Some(run.labels("network")),
        ..Default::default()
    };
    engine.call("create network", &name, LIMIT, engine.docker().create_network(request)).await.map(drop)
}

/// The packet size of Docker's default network, which an administrator may have lowered for a reason.
async fn default_mtu(engine: &Engine) -> Option<String> {
    let asked = engine.docker().inspect_network("bridge", None);
    let bridge = engine.call("inspect network", "bridge", LIMIT, asked).await.ok()?;
    bridge.options?.remove(MTU_OPTION)
}

/// A private IPv6 range (RFC 4193) that hangs on the run alone.
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
