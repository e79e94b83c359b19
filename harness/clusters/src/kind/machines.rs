//! The machines of a cluster, as Docker lists them.

use crate::error::ClusterError;
use crate::images::Engine;
use crate::leftovers::CLUSTER_LABEL;
use crate::record::{Machine, Role};
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::ListContainersOptionsBuilder;
use futures::future::try_join_all;
use std::collections::HashMap;
use std::time::Duration;

/// kind's label with a container's role.
const ROLE_LABEL: &str = "io.x-k8s.kind.role";
/// Time limit for a query to the engine.
const LIMIT: Duration = Duration::from_secs(60);

/// The machines of a cluster on that network: control planes first, otherwise by name.
pub(super) async fn machines(
    engine: &Engine,
    cluster: &str,
    network: &str,
) -> Result<Vec<Machine>, ClusterError> {
    let filters = HashMap::from([("label", vec![format!("{CLUSTER_LABEL}={cluster}")])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = engine
        .call("list machines of", cluster, LIMIT, engine.docker().list_containers(Some(options)))
        .await?;
    let looks = listed
        .iter()
        .filter_map(|container| container.id.as_deref())
        .map(|id| engine.call("inspect container", id, LIMIT, engine.docker().inspect_container(id, None)));
    let mut machines: Vec<Machine> =
        try_join_all(looks).await?.into_iter().filter_map(|container| machine(container, network)).collect();
    let order =
        |machine: &Machine| (machine.role != Role::ControlPlane, machine.name.len(), machine.name.clone());
    machines.sort_by_key(order);
    Ok(machines)
}

/// A container as a machine; `None` for kind's load balancer before several control planes.
pub(super) fn machine(container: ContainerInspectResponse, network: &str) -> Option<Machine> {
    let labels = container.config.and_then(|config| config.labels)?;
    let role = match labels.get(ROLE_LABEL)?.as_str() {
        "control-plane" => Role::ControlPlane,
        "worker" => Role::Worker,
        _ => return None,
    };
    let endpoint = container.network_settings?.networks?.remove(network)?;
    let mut machine = Machine {
        name: container.name?.trim_start_matches('/').to_owned(),
        role,
        ipv4: endpoint.ip_address.and_then(|address| address.parse().ok()),
        ipv6: endpoint.global_ipv6_address.and_then(|address| address.parse().ok()),
        container_id: container.id?,
        reached_at: None,
    };
    // The engine's networks are on this machine too.
    machine.reached_at = machine.ip();
    Some(machine)
}
