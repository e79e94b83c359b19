//! A Node as its kubelet writes it: at registration and with each status. Pure functions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec as CoreNodeSpec,
    NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use sha2::{Digest, Sha256};

use crate::settings::{CloudProvider, KubernetesVersion, NodeSpec, PodNetwork};
use crate::taints;

/// The annotation with the addresses from the kubelet's command line.
const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";
/// The message of a kubelet while there is no pod network.
const NETWORK_NOT_READY: &str = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
                                 message:Network plugin returns error: cni plugin not initialized";

/// The architecture in the terms of Kubernetes.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The Node that a kubelet creates.
pub fn registration(spec: &NodeSpec, version: KubernetesVersion, ready: bool, now: Timestamp) -> Node {
    let mut labels = BTreeMap::from(
        [
            ("beta.kubernetes.io/arch", architecture()),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", architecture()),
            ("kubernetes.io/hostname", spec.name.as_str()),
            ("kubernetes.io/os", "linux"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    labels.extend(spec.labels.clone());
    let mut annotations = BTreeMap::from([(
        "volumes.kubernetes.io/controller-managed-attach-detach".to_owned(),
        "true".to_owned(),
    )]);
    if spec.cloud == CloudProvider::External && !spec.node_ips.is_empty() {
        let ips: Vec<_> = spec.node_ips.iter().map(IpAddr::to_string).collect();
        annotations.insert(PROVIDED_NODE_IP.to_owned(), ips.join(","));
    }
    let mut node_taints: Vec<Taint> = spec
        .taints
        .iter()
        .map(|taint| Taint {
            key: taint.key.clone(),
            value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
            effect: taint.effect.clone(),
            time_added: None,
        })
        .collect();
    if spec.cloud == CloudProvider::External {
        node_taints.push(Taint {
            value: Some("true".to_owned()),
            ..taints::taint(taints::UNINITIALIZED, taints::NO_SCHEDULE)
        });
    }
    Node {
        metadata: ObjectMeta {
            name: Some(spec.name.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(CoreNodeSpec {
            taints: Some(node_taints).filter(|taints| !taints.is_empty()),
            provider_id: spec.provider_id.clone(),
            ..CoreNodeSpec::default()
        }),
        status: Some(status(spec, version, None, ready, now)),
    }
}

/// The status that a kubelet posts, based on the one it has read.
pub fn status(
    spec: &NodeSpec,
    version: KubernetesVersion,
    read: Option<&NodeStatus>,
    ready: bool,
    now: Timestamp,
) -> NodeStatus {
    let known = read.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let capacity: BTreeMap<String, Quantity> =
        spec.capacity.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))).collect();
    NodeStatus {
        addresses: addresses(
            spec,
            version,
            read.and_then(|status| status.addresses.as_deref()).unwrap_or_default(),
        ),
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(conditions(known, ready, now)),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
        }),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            boot_id: identity(&spec.name, "boot"),
            container_runtime_version: "embedded://1.0".to_owned(),
            kernel_version: "simulated".to_owned(),
            kube_proxy_version: version.to_string(),
            kubelet_version: version.to_string(),
            machine_id: identity(&spec.name, "machine").replace('-', ""),
            operating_system: "linux".to_owned(),
            os_image: "embedded node".to_owned(),
            system_uuid: identity(&spec.name, "system"),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

/// The addresses that a kubelet posts. It does not change those of the cloud. With `--node-ip`, newer
/// kubelets post that address until the cloud has set others. Without it, they guess an address until 1.28,
/// and know only their host name from 1.29 on (kubernetes#121028). Without a cloud, they post their own
/// addresses.
fn addresses(spec: &NodeSpec, version: KubernetesVersion, known: &[NodeAddress]) -> Option<Vec<NodeAddress>> {
    let external = spec.cloud == CloudProvider::External;
    if external && (!known.is_empty() || version.minor < 21) {
        return Some(known.to_vec()).filter(|addresses| !addresses.is_empty());
    }
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    let mut addresses: Vec<_> =
        spec.node_ips.iter().map(|ip| address("InternalIP", ip.to_string())).collect();
    let guesses = !external || version.minor < 29;
    if addresses.is_empty()
        && let Some(loopback) = spec.loopback.filter(|_| guesses)
    {
        addresses.push(address("InternalIP", loopback.to_string()));
    }
    addresses.push(address("Hostname", spec.name.clone()));
    Some(addresses)
}

/// The conditions of a working kubelet, with its network or without. A transition time changes only with the
/// status.
fn conditions(known: &[NodeCondition], ready: bool, now: Timestamp) -> Vec<NodeCondition> {
    let fine = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ];
    let mut all: Vec<_> =
        fine.iter().map(|(type_, reason, message)| (*type_, "False", *reason, *message)).collect();
    all.push(if ready {
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    } else {
        ("Ready", "False", "KubeletNotReady", NETWORK_NOT_READY)
    });
    all.into_iter()
        .map(|(type_, status, reason, message)| {
            let unchanged = known.iter().find(|known| known.type_ == type_ && known.status == status);
            NodeCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: Some(Time(now)),
                last_transition_time: unchanged
                    .and_then(|known| known.last_transition_time.clone())
                    .or(Some(Time(now))),
            }
        })
        .collect()
}

/// Whether the pod network of this kind works on a Node. `None`: the kubelet has not registered.
pub fn network_ready(network: &PodNetwork, node: Option<&Node>) -> bool {
    match network {
        PodNetwork::None => false,
        PodNetwork::Independent => true,
        PodNetwork::WaitsForAddresses => node.is_some_and(|node| !host_ips(node).is_empty()),
        PodNetwork::StartupTaint { waits_for_addresses: false, .. } => true,
        PodNetwork::StartupTaint { waits_for_addresses: true, .. } => {
            node.is_some_and(|node| !host_ips(node).is_empty())
        }
    }
}

/// The host addresses for Pods on this Node: the first internal one, otherwise the first external one, and
/// the next one of the other family.
pub fn host_ips(node: &Node) -> Vec<IpAddr> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let mut all = ["InternalIP", "ExternalIP"]
        .iter()
        .flat_map(|type_| addresses.iter().filter(move |address| address.type_ == **type_))
        .filter_map(|address| address.address.parse::<IpAddr>().ok());
    let first = all.next();
    let second = first.and_then(|first| all.find(|ip| ip.is_ipv4() != first.is_ipv4()));
    first.into_iter().chain(second).collect()
}

/// The taints of a Node.
pub fn node_taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// The condition of a Node with this type.
pub fn condition<'n>(node: &'n Node, type_: &str) -> Option<&'n NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether the Node is Ready.
pub fn is_ready(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|condition| condition.status == "True")
}

/// An identity that is always the same for the same machine.
fn identity(name: &str, what: &str) -> String {
    let digest = Sha256::digest(format!("{what}/{name}").as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: KubernetesVersion = KubernetesVersion { minor: 36, patch: 2 };

    #[test]
    fn an_external_cloud_means_a_taint_and_no_address_but_the_host_name() {
        let node = registration(&NodeSpec::new("a"), VERSION, false, Timestamp::UNIX_EPOCH);
        let taints = node_taints(&node);
        assert_eq!(taints.len(), 1);
        assert_eq!(
            (taints[0].key.as_str(), taints[0].value.as_deref()),
            (taints::UNINITIALIZED, Some("true"))
        );
        let kinds = |node: &Node| -> Vec<String> {
            let status = node.status.as_ref().and_then(|status| status.addresses.as_ref());
            status.into_iter().flatten().map(|address| address.type_.clone()).collect()
        };
        assert_eq!(kinds(&node), ["Hostname"]);
        assert!(!is_ready(&node) && host_ips(&node).is_empty());
        assert!(!node.metadata.annotations.unwrap_or_default().contains_key(PROVIDED_NODE_IP));
        let mut spec = NodeSpec::new("a");
        spec.loopback = Some(std::net::Ipv4Addr::new(127, 1, 0, 1));
        let older = KubernetesVersion { minor: 28, patch: 0 };
        let guessed = registration(&spec, older, false, Timestamp::UNIX_EPOCH);
        assert_eq!(kinds(&guessed), ["InternalIP", "Hostname"], "until 1.28 a kubelet guesses");
    }

    #[test]
    fn a_chosen_address_is_annotated_and_holds_until_the_cloud_speaks() {
        let mut spec = NodeSpec::new("a");
        spec.node_ips = vec![IpAddr::from([10, 0, 0, 7])];
        let node = registration(&spec, VERSION, false, Timestamp::UNIX_EPOCH);
        let annotations = node.metadata.annotations.clone().unwrap_or_default();
        assert_eq!(annotations.get(PROVIDED_NODE_IP).map(String::as_str), Some("10.0.0.7"));
        assert_eq!(host_ips(&node), spec.node_ips);
        let cloud = vec![NodeAddress { type_: "InternalIP".to_owned(), address: "10.9.9.9".to_owned() }];
        assert_eq!(addresses(&spec, VERSION, &cloud), Some(cloud.clone()));
        assert_eq!(addresses(&spec, KubernetesVersion { minor: 20, patch: 2 }, &[]), None);
    }

    #[test]
    fn two_families_are_annotated_and_posted_in_their_order() {
        let mut spec = NodeSpec::new("a");
        spec.node_ips = vec![IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 7]), IpAddr::from([10, 0, 0, 7])];
        let mut node = registration(&spec, VERSION, false, Timestamp::UNIX_EPOCH);
        let annotations = node.metadata.annotations.clone().unwrap_or_default();
        assert_eq!(annotations.get(PROVIDED_NODE_IP).map(String::as_str), Some("fd00::7,10.0.0.7"));
        assert_eq!(host_ips(&node), spec.node_ips);
        let status = node.status.get_or_insert_default();
        let posted = status.addresses.get_or_insert_default();
        let shown: Vec<_> = posted.iter().map(|one| (one.type_.as_str(), one.address.as_str())).collect();
        assert_eq!(shown, [("InternalIP", "fd00::7"), ("InternalIP", "10.0.0.7"), ("Hostname", "a")]);
        // Pods do not get a second address of the same family.
        posted[1].address = "fd00::8".to_owned();
        assert_eq!(host_ips(&node), [spec.node_ips[0]]);
    }

    #[test]
    fn without_a_cloud_the_kubelet_gives_its_own_address() {
        let mut spec = NodeSpec::new("a");
        spec.cloud = CloudProvider::None;
        spec.loopback = Some(std::net::Ipv4Addr::new(127, 1, 0, 1));
        let node = registration(&spec, VERSION, true, Timestamp::UNIX_EPOCH);
        assert_eq!(host_ips(&node), [IpAddr::from([127, 1, 0, 1])]);
        assert!(node_taints(&node).is_empty() && is_ready(&node));
    }

    #[test]
    fn transition_times_change_with_the_status_only() {
        let first = conditions(&[], false, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(100).expect("a valid time");
        let ready = |all: &[NodeCondition]| {
            all.iter().find(|one| one.type_ == "Ready").cloned().expect("Ready is there")
        };
        let same = ready(&conditions(&first, false, later));
        assert_eq!(same.last_transition_time, Some(Time(Timestamp::UNIX_EPOCH)));
        assert_eq!(same.last_heartbeat_time, Some(Time(later)));
        let changed = ready(&conditions(&first, true, later));
        assert_eq!(changed.last_transition_time, Some(Time(later)));
    }

    #[test]
    fn a_network_may_wait_for_addresses() {
        let mut spec = NodeSpec::new("a");
        let bare = registration(&spec, VERSION, false, Timestamp::UNIX_EPOCH);
        spec.node_ips = vec![IpAddr::from([10, 0, 0, 7])];
        let addressed = registration(&spec, VERSION, false, Timestamp::UNIX_EPOCH);
        let tainting =
            |waits_for_addresses| PodNetwork::StartupTaint { key: "x".to_owned(), waits_for_addresses };
        for (network, expected) in [
            (PodNetwork::None, [false, false]),
            (PodNetwork::Independent, [true, true]),
            (PodNetwork::WaitsForAddresses, [false, true]),
            (tainting(false), [true, true]),
            (tainting(true), [false, true]),
        ] {
            let got = [&bare, &addressed].map(|node| network_ready(&network, Some(node)));
            assert_eq!(got, expected, "{network:?}");
        }
    }
}
