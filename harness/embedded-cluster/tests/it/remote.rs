//! Another process reaches machines and Pods through a socket.

use crate::wait;
use embedded_cluster::{
    AuditQuery, Cluster, ClusterSpec, ContainerSignal, KubernetesVersion, MachineOperation, OutOfReach,
    PodNetwork, Power, Remote, RemoteError, User,
};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

#[tokio::test]
async fn orders_are_carried_out_or_refused_and_a_cluster_that_is_gone_is_named() {
    let spec = ClusterSpec { network: PodNetwork::None, ..ClusterSpec::of_nodes(1) };
    let cluster = Cluster::start(spec).await.expect("a cluster");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let serving = cluster.serve(&socket).expect("a socket");
    cluster.serve(&socket).expect_err("it is taken");
    let remote = Remote::new(&socket);

    remote.machine("node-0", MachineOperation::Freeze).await.expect("frozen");
    assert_eq!(cluster.machines().state("node-0").map(|state| state.power), Ok(Power::Frozen));
    remote.machine("node-0", MachineOperation::Thaw).await.expect("it runs again");
    assert_eq!(cluster.machines().state("node-0").map(|state| state.power), Ok(Power::On));
    remote.set_network(PodNetwork::Independent).await.expect("replaced");
    let nodes: Api<Node> = Api::all(cluster.client());
    wait(&nodes, "node-0", "the Node is ready once it has a network", |node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.filter(|one| one.type_ == "Ready").any(|one| one.status == "True")
    })
    .await;

    let error = remote.machine("nobody", MachineOperation::PowerOff).await.expect_err("no such machine");
    assert!(matches!(&error, RemoteError::Refused { why } if why.contains("nobody")), "{error:?}");
    let error = remote.signal_container("embedded://x", ContainerSignal::Kill).await;
    assert!(matches!(error, Err(RemoteError::Refused { .. })), "{error:?}");

    drop(serving);
    cluster.stop().await;
    let error = remote.machine("node-0", MachineOperation::Freeze).await.expect_err("nothing listens there");
    assert!(matches!(&error, RemoteError::Gone { socket: named, .. } if *named == socket), "{error:?}");
}

#[tokio::test]
async fn control_plane_and_kubelets_are_replaced_by_those_of_other_versions() {
    let version = |text: &str| text.parse::<KubernetesVersion>().expect("a version");
    let spec = ClusterSpec { kubernetes: version("1.33"), ..ClusterSpec::of_nodes(2) };
    let cluster = Cluster::start(spec).await.expect("a cluster");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let _serving = cluster.serve(&socket).expect("a socket");
    let remote = Remote::new(&socket);
    let served = async || cluster.client().apiserver_version().await.map(|info| info.git_version);
    let nodes: Api<Node> = Api::all(cluster.client());
    let kubelet = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.clone());
    assert_eq!(served().await.expect("an answer"), "v1.33.0");

    remote.replace_control_plane(version("1.34")).await.expect("replaced");
    assert_eq!(served().await.expect("an answer"), "v1.34.0");
    let before = nodes.get("node-0").await.expect("a Node");
    assert_eq!(kubelet(&before).as_deref(), Some("v1.33.0"), "kubelets keep their version");

    remote.replace_kubelet("node-0", version("1.34")).await.expect("replaced");
    let after = wait(&nodes, "node-0", "the new kubelet reports its version", |node| {
        kubelet(node).as_deref() == Some("v1.34.0")
    })
    .await;
    assert_eq!(after.metadata.uid, before.metadata.uid, "it takes its Node over");
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    assert_eq!(taints(&after), taints(&before));
    let other = nodes.get("node-1").await.expect("a Node");
    assert_eq!(kubelet(&other).as_deref(), Some("v1.33.0"), "the others stay as they are");

    let error = remote.replace_kubelet("node-9", version("1.34")).await.expect_err("a missing machine");
    assert!(matches!(&error, RemoteError::Refused { why } if why.contains("node-9")), "{error:?}");
    cluster.stop().await;
}

#[tokio::test]
async fn a_partition_ends_and_refused_requests_are_in_the_audit_log() {
    let cluster = Cluster::start(ClusterSpec::api_server()).await.expect("a cluster");
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let _serving = cluster.serve(&socket).expect("a socket");
    let remote = Remote::new(&socket);

    let account = User::service_account("kube-system", "ccm", "");
    let nodes: Api<Node> = Api::all(cluster.client_as(account.clone()));
    remote.part(OutOfReach::ServiceAccounts).await.expect("cut off");
    let asked = tokio::spawn(async move { nodes.list(&ListParams::default()).await.map(drop) });
    Api::<Node>::all(cluster.client()).list(&ListParams::default()).await.expect("others are heard");
    assert!(!asked.is_finished());
    remote.part(OutOfReach::None).await.expect("within reach again");
    let refused = asked.await.expect("it ends").expect_err("it has no right");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused:?}");

    let refusals = AuditQuery { user: account.name.clone(), refused: true, ..AuditQuery::default() };
    let audited = remote.audit(refusals).await.expect("the audit");
    let [entry] = audited.as_slice() else { panic!("{audited:?}") };
    assert_eq!((entry.verb.as_str(), entry.resource.as_str(), entry.authorized), ("list", "nodes", false));
    cluster.stop().await;
}
