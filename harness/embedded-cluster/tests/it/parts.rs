//! Clusters with and without machines and controllers.

use crate::wait;
use embedded_cluster::{
    CloudProvider, Cluster, ClusterSpec, Controller, IpFamilies, MachineSpec, Pace, Program, Role, StartError,
};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, LogParams, PostParams};
use kube::runtime::wait::conditions::is_pod_running;
use kube::runtime::wait::{Condition, await_condition};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn web(kind: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn with_all_controllers_a_deployment_gets_a_running_pod() {
    let cluster = Cluster::start(ClusterSpec::of_nodes(2)).await.expect("a cluster");
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    let web = serde_json::from_value(web("Deployment")).expect("a Deployment");
    deployments.create(&PostParams::default(), &web).await.expect("created");
    wait(&deployments, "web", "a replica is ready", |web| {
        web.status.as_ref().and_then(|status| status.ready_replicas) == Some(1)
    })
    .await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let pods = pods.list(&ListParams::default()).await.expect("a list").items;
    assert_eq!(pods.len(), 1);
    assert!(is_pod_running().matches_object(pods.first()));
    let node = pods[0].spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    assert_eq!(node, Some("node-1"), "node-0 is a control plane");
    cluster.stop().await;
}

#[tokio::test]
async fn an_omitted_controller_does_nothing_and_the_others_continue() {
    let spec = ClusterSpec {
        controllers: Controller::all_but(&[Controller::Deployment]),
        ..ClusterSpec::of_nodes(1)
    };
    let cluster = Cluster::start(spec).await.expect("a cluster");
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "default");
    let deployment = serde_json::from_value(web("Deployment")).expect("a Deployment");
    deployments.create(&PostParams::default(), &deployment).await.expect("created");
    let sets: Api<ReplicaSet> = Api::namespaced(cluster.client(), "default");
    let set = serde_json::from_value(web("ReplicaSet")).expect("a ReplicaSet");
    sets.create(&PostParams::default(), &set).await.expect("created");
    let is_ready = |set: &ReplicaSet| set.status.as_ref().and_then(|status| status.ready_replicas) == Some(1);
    wait(&sets, "web", "a replica is ready", is_ready).await;
    let names: Vec<_> = sets.list(&ListParams::default()).await.expect("a list").items;
    assert_eq!(
        names.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        ["web"],
        "none of the Deployment's"
    );
    let status = deployments.get("web").await.expect("a Deployment").status.unwrap_or_default();
    assert_eq!(status.observed_generation, None);
    cluster.stop().await;
}

#[tokio::test]
async fn a_machine_that_loses_its_power_turns_unknown_and_one_that_is_added_registers() {
    let soon = Duration::from_secs(1);
    let pace = Pace { node_grace: soon, node_check: soon / 4, lease_renewal: soon / 4, ..Pace::default() };
    let cluster = Cluster::start(ClusterSpec { pace, ..ClusterSpec::of_nodes(1) }).await.expect("a cluster");
    let nodes: Api<Node> = Api::all(cluster.client());
    let ready = |is: &'static str| {
        move |node: &Node| {
            let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.filter(|one| one.type_ == "Ready").any(|one| one.status == is)
        }
    };
    wait(&nodes, "node-0", "the Node is ready", ready("True")).await;
    cluster.machines().power_off("node-0").expect("there is such a machine");
    wait(&nodes, "node-0", "the Node is unknown", ready("Unknown")).await;
    cluster.machines().add(embedded_cluster::NodeSpec::new("late")).expect("no such machine yet");
    cluster.machines().registered("late").await.expect("there is such a machine");
    assert!(nodes.get_opt("late").await.expect("an answer").is_some());
    assert!(cluster.machines().registered("nobody").await.is_err());
    cluster.stop().await;
}

#[tokio::test]
async fn nodes_have_their_labels_taints_and_addresses() {
    let labels = BTreeMap::from([("example.com/pool".to_owned(), "a".to_owned())]);
    let worker = MachineSpec { labels, ..MachineSpec::awaiting_cloud("worker", Role::Worker) };
    let machines = vec![MachineSpec::new("first", Role::ControlPlane), worker];
    let spec = ClusterSpec { families: IpFamilies::Dual, ..ClusterSpec::new(machines) };
    let cluster = Cluster::start(spec).await.expect("a cluster");
    let nodes: Api<Node> = Api::all(cluster.client());
    let first = nodes.get("first").await.expect("it is registered");
    assert!(first.labels().contains_key("node-role.kubernetes.io/control-plane"));
    let addresses = first.status.and_then(|status| status.addresses).unwrap_or_default();
    let own = [
        Some(Cluster::node_ipv4(0).to_string()),
        Cluster::node_ipv6(IpFamilies::Dual, 0).map(|ip| ip.to_string()),
    ];
    for ip in own.into_iter().flatten() {
        assert!(addresses.iter().any(|one| one.address == ip), "{ip}: {addresses:?}");
    }
    let worker = nodes.get("worker").await.expect("it is registered");
    assert_eq!(worker.labels().get("example.com/pool").map(String::as_str), Some("a"));
    let taints = worker.spec.and_then(|spec| spec.taints).unwrap_or_default();
    assert!(taints.iter().any(|taint| taint.key == "node.cloudprovider.kubernetes.io/uninitialized"));
    cluster.stop().await;
}

#[tokio::test]
async fn pods_of_programs_run_them() {
    let spec = ClusterSpec {
        programs: vec![Program::new("greeter:1", ["sh", "-c", "echo hello; exec sleep 1000"])],
        ..ClusterSpec::of_nodes(1)
    };
    let cluster = Cluster::start(spec).await.expect("a cluster");
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "greeter"},
        "spec": {"containers": [{"name": "greeter", "image": "greeter:1"}]},
    }))
    .expect("a Pod");
    pods.create(&PostParams::default(), &pod).await.expect("created");
    let running = await_condition(pods.clone(), "greeter", is_pod_running());
    tokio::time::timeout(crate::LIMIT, running).await.expect("in time").expect("a watch");
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut lines =
        futures::AsyncBufReadExt::lines(pods.log_stream("greeter", &follow).await.expect("a log"));
    let line = tokio::time::timeout(crate::LIMIT, futures::TryStreamExt::try_next(&mut lines)).await;
    assert_eq!(line.expect("in time").expect("a line").as_deref(), Some("hello"));
    drop(lines);
    let log = cluster.pods().log("default", "greeter", "greeter").expect("it has run");
    assert_eq!(log.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["hello\n"]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_spec_that_contradicts_itself_is_refused() {
    let mut machine = MachineSpec::new("a", Role::Worker);
    machine.cloud = CloudProvider::External;
    let spec = ClusterSpec {
        families: IpFamilies::Dual,
        kubernetes: "1.28".parse().expect("a version"),
        ..ClusterSpec::new(vec![machine])
    };
    let error = Cluster::start(spec).await.expect_err("kubelets of 1.28 take one address");
    assert!(matches!(error, StartError::Controllers(_)), "{error:?}");
}
