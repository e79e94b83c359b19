//! Nodes from registration to removal.

use std::collections::BTreeSet;
use std::time::Duration;

use embedded_apiserver::Config;
use embedded_controllers::{CloudProvider, NodeSpec, PodCidrs, PodRange};
use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::cluster::{Cluster, create, wait, wait_gone};

fn ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == "Ready").map(|one| one.status.clone())
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

fn simulated() -> serde_json::Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "none"}]}})
}

#[tokio::test]
async fn pods_wait_until_the_cloud_has_initialised_the_node() {
    let cluster = Cluster::start(vec![NodeSpec::new("node-0")], |_| {}).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let node =
        wait(&nodes, "node-0", "the Node is ready", |node| ready(node).as_deref() == Some("True")).await;
    assert!(taints(&node).contains(&"node.cloudprovider.kubernetes.io/uninitialized:NoSchedule".to_owned()));
    // Without --node-ip a kubelet only knows its host name (contract KBL-04).
    let addresses = node.status.as_ref().and_then(|status| status.addresses.clone()).unwrap_or_default();
    let kinds: Vec<&str> = addresses.iter().map(|address| address.type_.as_str()).collect();
    assert_eq!(kinds, ["Hostname"]);
    wait(&leases, "node-0", "the kubelet has a Lease", |lease| {
        lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.as_deref() == Some("node-0"))
    })
    .await;
    let pods = cluster.api::<Pod>();
    create(&pods, simulated()).await;
    let scheduled = |pod: &Pod| {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|one| one.type_ == "PodScheduled").and_then(|one| one.message.clone())
    };
    let pod = wait(&pods, "web", "the scheduler says why not", |pod| scheduled(pod).is_some()).await;
    assert_eq!(
        scheduled(&pod).as_deref(),
        Some(
            "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: \
             1 Preemption is not helpful for scheduling."
        )
    );
    let initialised = json!({"spec": {"taints": []}});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(initialised)).await.expect("patched");
    wait(&pods, "web", "the Pod runs", |pod| {
        pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
    })
    .await;
    wait(&nodes, "node-0", "the Node has a range", |node| {
        node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref()) == Some("10.244.0.0/24")
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_silent_node_is_tainted_its_pods_leave_and_it_comes_back() {
    let own = |name: &str| NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new(name) };
    let cluster = Cluster::start(vec![own("node-0"), own("node-1")], |settings| {
        settings.pace.node_grace = Duration::from_millis(1500);
        settings.pace.node_check = Duration::from_millis(500);
        settings.pace.lease_renewal = Duration::from_millis(300);
    })
    .await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    for name in ["node-0", "node-1"] {
        wait(&nodes, name, "the Node is clean", |node| {
            ready(node).as_deref() == Some("True") && taints(node).is_empty()
        })
        .await;
    }
    let pods = cluster.api::<Pod>();
    let mut pod = simulated();
    pod["spec"]["nodeName"] = json!("node-0");
    pod["spec"]["tolerations"] = json!([
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
    ]);
    create(&pods, pod).await;
    wait(&pods, "web", "the Pod runs", |pod| {
        pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
    })
    .await;
    cluster.running.nodes().stop_kubelet("node-0").expect("there is such a machine");
    let node = wait(&nodes, "node-0", "the Node is unreachable", |node| {
        ready(node).as_deref() == Some("Unknown") && taints(node).len() == 2
    })
    .await;
    assert_eq!(
        taints(&node),
        ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"]
    );
    wait(&pods, "web", "the Pod is on its way out", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    cluster.running.nodes().start_kubelet("node-0").expect("there is such a machine");
    wait_gone(&pods, "web").await;
    wait(&nodes, "node-0", "the Node is clean again", |node| {
        ready(node).as_deref() == Some("True") && taints(node).is_empty()
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_deleted_node_returns_with_its_kubelets_next_start() {
    let cluster = Cluster::start(vec![NodeSpec::new("node-0")], |_| {}).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    wait(&nodes, "node-0", "the Node is ready", |node| ready(node).as_deref() == Some("True")).await;
    wait(&leases, "node-0", "the kubelet has a Lease", |_| true).await;
    nodes.delete("node-0", &Default::default()).await.expect("deleted");
    wait_gone(&leases, "node-0").await;
    assert!(nodes.get_opt("node-0").await.expect("asked").is_none(), "the kubelet registered a second time");
    cluster.running.nodes().restart_kubelet("node-0").expect("there is such a machine");
    wait(&nodes, "node-0", "the Node is back", |node| {
        taints(node).contains(&"node.cloudprovider.kubernetes.io/uninitialized:NoSchedule".to_owned())
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_gets_no_pod_range_while_they_are_withheld() {
    let cluster = Cluster::start(vec![NodeSpec::new("node-0")], |_| ()).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let has_range = |node: &Node| node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some());
    wait(&nodes, "node-0", "the first Node has a range", has_range).await;
    cluster.running.nodes().withhold_pod_cidrs(true);
    create(&nodes, json!({"metadata": {"name": "late"}})).await;
    let given = wait(&nodes, "late", "the second Node has a range", has_range);
    tokio::time::timeout(Duration::from_millis(800), given).await.expect_err("none is given");
    cluster.running.nodes().withhold_pod_cidrs(false);
    wait(&nodes, "late", "the second Node has a range", has_range).await;
    cluster.stop().await;
}

#[tokio::test]
async fn with_two_families_nodes_pods_and_services_have_addresses_of_both() {
    let config = Config {
        service_networks: vec!["10.96.0.0/16".to_owned(), "fd00:10:96::/112".to_owned()],
        ..Config::default()
    };
    let mut node = NodeSpec::new("node-0");
    node.node_ips = ["10.89.0.1", "fd00:10:89::1"].map(|ip| ip.parse().expect("an address")).into();
    let cluster = Cluster::with(config, vec![node], |settings| {
        let ipv6 = PodRange { cluster: "fd00:10:244::/56".parse().expect("a network"), node_prefix: 64 };
        settings.pod_cidrs = PodCidrs::Allocated(vec![PodRange::DEFAULT, ipv6]);
    })
    .await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let ranges = |node: &Node| node.spec.as_ref().and_then(|spec| spec.pod_cidrs.clone()).unwrap_or_default();
    let node = wait(&nodes, "node-0", "the Node has ranges", |node| !ranges(node).is_empty()).await;
    assert_eq!(ranges(&node), ["10.244.0.0/24", "fd00:10:244::/64"]);
    let annotation = node.annotations().get("alpha.kubernetes.io/provided-node-ip");
    assert_eq!(annotation.map(String::as_str), Some("10.89.0.1,fd00:10:89::1"));
    let initialised = json!({"spec": {"taints": []}});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(initialised)).await.expect("patched");
    let services = cluster.api::<Service>();
    let service = json!({"metadata": {"name": "web"}, "spec": {
        "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"], "selector": {"app": "web"},
        "ports": [{"port": 80}],
    }});
    let spec = create(&services, service).await.spec.unwrap_or_default();
    let families: Vec<bool> = spec.cluster_ips.iter().flatten().map(|ip| ip.contains(':')).collect();
    assert_eq!(families, [true, false]);
    let pods = cluster.api::<Pod>();
    let mut pod = simulated();
    pod["metadata"]["labels"] = json!({"app": "web"});
    create(&pods, pod).await;
    let ips = |pod: &Pod| -> Vec<String> {
        let status = pod.status.as_ref();
        status.iter().flat_map(|status| status.pod_ips.iter().flatten()).map(|one| one.ip.clone()).collect()
    };
    let pod = wait(&pods, "web", "the Pod has addresses", |pod| !ips(pod).is_empty()).await;
    let (ips, status) = (ips(&pod), pod.status.unwrap_or_default());
    assert!(
        ips.len() == 2 && ips[0].starts_with("10.244.0.") && ips[1].starts_with("fd00:10:244::"),
        "{ips:?}"
    );
    let hosts: Vec<String> = status.host_ips.into_iter().flatten().map(|one| one.ip).collect();
    assert_eq!((status.host_ip.as_deref(), hosts.len()), (Some("10.89.0.1"), 2), "{hosts:?}");
    // Endpoints have the Service's first family; slices have both.
    let addresses = |endpoints: &Endpoints| -> Vec<String> {
        let subsets = endpoints.subsets.iter().flatten();
        subsets.flat_map(|subset| subset.addresses.iter().flatten()).map(|one| one.ip.clone()).collect()
    };
    wait(&cluster.api::<Endpoints>(), "web", "its endpoints", |all| addresses(all) == ips[1..]).await;
    let slices = watcher(cluster.api::<EndpointSlice>(), watcher::Config::default()).applied_objects();
    let (mut slices, mut missing) = (std::pin::pin!(slices), BTreeSet::from(["IPv4", "IPv6"]));
    while !missing.is_empty() {
        let slice = slices.try_next().await.expect("a watch").expect("a slice");
        let ip = if slice.address_type == "IPv4" { &ips[0] } else { &ips[1] };
        if slice.endpoints.iter().flatten().any(|one| one.addresses == [ip.clone()]) {
            missing.remove(slice.address_type.as_str());
        }
    }
    cluster.stop().await;
}
