//! Finds the Docker network of an existing cluster's machines.

use bollard::query_parameters::ListContainersOptionsBuilder;
use harness_clusters::images::{Engine, EngineError};
use std::net::IpAddr;
use std::time::Duration;

/// How long the engine may take to list its containers.
const LIMIT: Duration = Duration::from_secs(30);

/// The network on which a container has one of these addresses; `None` if the machines are not containers of
/// this engine.
///
/// # Errors
/// The engine does not answer.
pub async fn network_of(engine: &Engine, addresses: &[IpAddr]) -> Result<Option<String>, EngineError> {
    let options = ListContainersOptionsBuilder::new().build();
    let listing = engine.docker().list_containers(Some(options));
    let containers = engine.call("list containers of", "the engine", LIMIT, listing).await?;
    let networks =
        containers.into_iter().filter_map(|container| container.network_settings?.networks).flatten();
    let own = |ip: Option<&str>| ip.and_then(|ip| ip.parse().ok()).is_some_and(|ip| addresses.contains(&ip));
    let mut found = networks.filter(|(_, endpoint)| own(endpoint.ip_address.as_deref()));
    Ok(found.next().map(|(name, _)| name))
}
