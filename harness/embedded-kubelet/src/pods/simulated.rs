//! Pods without a program: they run and are ready after a moment, and end when they are deleted.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Node, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use tokio::time::Instant;

use super::shared::Shared;
use super::status::{self, Ended, Phase, Restarts, Shown, Snapshot};
use embedded_runtime::cache::Key;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::node;
use embedded_runtime::queue::{Next, Outcome};
use embedded_runtime::writing;

/// How many Pods are started at once.
const AT_ONCE: usize = 16;

/// Starts the workers of the simulation.
pub(super) fn start(shared: &Arc<Shared>) {
    let weak = Arc::downgrade(shared);
    let seen = Arc::new(Mutex::new(HashMap::new()));
    shared.simulated.spawn(&shared.world.tasks, "simulated-pods", AT_ONCE, move |key| {
        let (weak, seen) = (weak.clone(), seen.clone());
        async move { look(&weak, &seen, &key).await }
    });
}

async fn look(shared: &Weak<Shared>, seen: &Mutex<HashMap<String, Instant>>, key: &Key) -> Outcome {
    let Some(shared) = shared.upgrade() else { return Ok(Next::Done) };
    let world = &shared.world;
    let Some(pod) = world.pods.get(key) else { return Ok(Next::Done) };
    let Some(node_name) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else {
        return Ok(Next::Done);
    };
    // A silent kubelet does nothing; when it is reachable again, it processes all its Pods.
    if !shared.fleet.speaks(&node_name) {
        return Ok(Next::Done);
    }
    let Some(client) = shared.fleet.client(&node_name) else { return Ok(Next::Done) };
    let api = writing::api_in::<Pod>(&client, &key.namespace);
    let uid = pod.uid().unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() {
        seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        writing::delete(&api, &world.pods, pod.as_ref(), at_once).await?;
        return Ok(Next::Done);
    }
    let known = pod.status.as_ref();
    let phase = known.and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let says_ready = known
        .and_then(|status| status.conditions.as_ref()?.iter().find(|one| one.type_ == "Ready"))
        .is_some_and(|ready| ready.status == "True");
    if phase == "Failed" || phase == "Succeeded" || (phase == "Running" && says_ready) {
        return Ok(Next::Done);
    }
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let unusable = containers.iter().find_map(unusable_image);
    if unusable.is_some() && known.is_some_and(|status| status.container_statuses.is_some()) {
        // It is waiting, and waits for ever.
        return Ok(Next::Done);
    }
    let host_network = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or(false);
    let Some(node) = world.node(&node_name).filter(|node| host_network || node::is_ready(node)) else {
        return Ok(Next::Done);
    };
    if node::host_ips(&node).is_empty() && containers.iter().any(reads_host_ip) {
        // Its environment cannot be made yet; the next attempt follows when the Node has an address.
        return Ok(Next::Done);
    }
    let first =
        *seen.lock().unwrap_or_else(PoisonError::into_inner).entry(uid.clone()).or_insert_with(Instant::now);
    let left = world.settings.pace.simulated_start.saturating_sub(first.elapsed());
    if !left.is_zero() {
        return Ok(Next::After(left));
    }
    let snapshot = running(&pod, &node, host_network, &shared);
    let minor = shared.fleet.kubelet(&node_name).minor;
    let status = status::status(&pod, &snapshot, minor, Timestamp::now());
    match writing::patch_status(&api, &world.pods, &key.name, pod.uid(), status).await {
        Err(error) if writing::is_not_found(&error) => {}
        other => other?,
    }
    if let Some(why) = unusable {
        let source = Source { component: "kubelet", host: Some(&node_name) };
        world.recorder.tell(
            &client,
            source,
            pod.as_ref(),
            Weight::Warning,
            "Failed",
            format!("Error: {why}"),
        );
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
    Ok(Next::Done)
}

/// Why a kubelet cannot use the image of a container; `None` if it can.
fn unusable_image(container: &Container) -> Option<String> {
    let image = container.image.as_deref().unwrap_or_default();
    super::image::fault(image).map(|fault| super::image::refusal(image, &fault))
}

/// Whether the container's environment refers to the address of its Node.
fn reads_host_ip(container: &Container) -> bool {
    container.env.iter().flatten().any(|variable| {
        let source = variable.value_from.as_ref().and_then(|source| source.field_ref.as_ref());
        source
            .is_some_and(|field| field.field_path == "status.hostIP" || field.field_path == "status.hostIPs")
    })
}

/// The status of a Pod whose containers all run, except those whose image cannot be used.
fn running(pod: &Pod, node: &Node, host_network: bool, shared: &Shared) -> Snapshot {
    let now = Timestamp::now();
    let spec = pod.spec.as_ref();
    let known = pod.status.as_ref().and_then(|status| status.pod_ips.as_deref()).unwrap_or_default();
    let known: Vec<IpAddr> = known.iter().filter_map(|known| known.ip.parse().ok()).collect();
    let host_ips = node::host_ips(node);
    let pod_ips = match (host_network, known.is_empty()) {
        (true, _) => host_ips.clone(),
        (false, true) => addresses(node, shared),
        (false, false) => known,
    };
    let shown = |container: &Container, phase: Phase| Shown {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        last: None,
        restarts: 0,
        started: matches!(phase, Phase::Running { .. } | Phase::Ended(_)),
        ready: matches!(phase, Phase::Running { .. } | Phase::Ended(_)),
        phase,
    };
    let id =
        |container: &Container| format!("embedded://{}-{}", pod.uid().unwrap_or_default(), container.name);
    let init =
        spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default().iter().map(|container| {
            let ended = Ended {
                code: 0,
                reason: "Completed".to_owned(),
                message: None,
                started: Some(now),
                finished: now,
                id: id(container),
            };
            shown(container, Phase::Ended(ended))
        });
    let phase = |container: &Container| match unusable_image(container) {
        Some(why) => Phase::Waiting { reason: super::image::UNUSABLE.to_owned(), message: Some(why) },
        None => Phase::Running { since: now, id: id(container) },
    };
    let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    Snapshot {
        init: init.collect(),
        containers: main.iter().map(|one| shown(one, phase(one))).collect(),
        host_ips,
        pod_ips,
        start: pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0),
        restarts: Restarts::of(pod),
    }
}

/// An address from each of the node's ranges, or from this computer if the node has none.
pub(crate) fn addresses(node: &Node, shared: &Shared) -> Vec<IpAddr> {
    let number = shared.next_number();
    let spec = node.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.pod_cidrs.as_deref()).unwrap_or_default();
    let mut own: Vec<_> = ranges.iter().filter_map(|range| within(range, number)).collect();
    // A kubelet puts the family of its node's own address first.
    let preferred = node::host_ips(node).first().is_none_or(IpAddr::is_ipv4);
    own.sort_by_key(|ip| ip.is_ipv4() != preferred);
    if own.is_empty() { vec![IpAddr::V4(Shared::next_loopback())] } else { own }
}

/// The address with this number in a range; numbers wrap around. The first two addresses and the last belong
/// to the node.
fn within(range: &str, number: u32) -> Option<IpAddr> {
    let (first, prefix) = range.split_once('/')?;
    let (first, prefix): (IpAddr, u32) = (first.parse().ok()?, prefix.parse().ok()?);
    let (start, bits) = match first {
        IpAddr::V4(first) => (u128::from(first.to_bits()), 32_u32),
        IpAddr::V6(first) => (first.to_bits(), 128),
    };
    let size = 1_u128.checked_shl(bits.checked_sub(prefix)?).unwrap_or(u128::MAX);
    let address = start.checked_add(2 + u128::from(number) % size.saturating_sub(3).max(1))?;
    match first {
        IpAddr::V4(_) => Some(Ipv4Addr::from_bits(u32::try_from(address).ok()?).into()),
        IpAddr::V6(_) => Some(Ipv6Addr::from_bits(address).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_within_their_range() {
        let check = |range: &str, number: u32, expected: Option<&str>| {
            assert_eq!(
                within(range, number).map(|ip| ip.to_string()).as_deref(),
                expected,
                "{range} {number}"
            );
        };
        check("10.244.3.0/24", 0, Some("10.244.3.2"));
        check("10.244.3.0/24", 252, Some("10.244.3.254"));
        check("10.244.3.0/24", 253, Some("10.244.3.2"));
        check("fd00:10:244:3::/64", 0x7f10_0001, Some("fd00:10:244:3::7f10:3"));
        for wrong in ["10.244.3.0", "10.244.3.0/33", "x/24", "fd00::/129"] {
            check(wrong, 1, None);
        }
    }
}
