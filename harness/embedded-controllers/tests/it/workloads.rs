//! Workloads, owners and namespaces.

use embedded_controllers::{CloudProvider, NodeSpec};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, wait, wait_gone};

async fn cluster() -> Cluster {
    let own = |name: &str| NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new(name) };
    Cluster::start(vec![own("node-0"), own("node-1")], |_| {}).await
}

fn workload(name: &str, image: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    }})
}

#[tokio::test]
async fn a_deployment_rolls_over_and_takes_its_pods_with_it() {
    let cluster = cluster().await;
    let deployments = cluster.api::<Deployment>();
    let mut object = workload("web", "one");
    object["spec"]["replicas"] = json!(3);
    create(&deployments, object).await;
    let services = cluster.api::<Service>();
    create(
        &services,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
    )
    .await;
    let available = |wanted: i32, updated: i32| {
        move |deployment: &Deployment| {
            deployment.status.as_ref().is_some_and(|status| {
                status.observed_generation == deployment.metadata.generation
                    && status.available_replicas == Some(wanted)
                    && status.updated_replicas == Some(updated)
                    && status.replicas == Some(wanted)
            })
        }
    };
    wait(&deployments, "web", "three are available", available(3, 3)).await;
    let slices = cluster.api::<EndpointSlice>();
    let slice = slices.list(&ListParams::default()).await.expect("listed").items.into_iter().next();
    let slice = slice.map(|slice| slice.name_any()).expect("the Service has a slice");
    wait(&slices, &slice, "the Service has three endpoints", |slice| {
        slice.endpoints.as_ref().is_some_and(|endpoints| {
            endpoints
                .iter()
                .filter(|one| one.conditions.as_ref().and_then(|one| one.ready) == Some(true))
                .count()
                == 3
        })
    })
    .await;
    let next = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(next)).await.expect("patched");
    let rolled = wait(&deployments, "web", "the new ones are available", available(3, 3)).await;
    assert_eq!(rolled.annotations().get("deployment.kubernetes.io/revision").map(String::as_str), Some("2"));
    deployments.delete("web", &Default::default()).await.expect("deleted");
    let sets: Api<ReplicaSet> = cluster.api();
    for set in sets.list(&ListParams::default()).await.expect("listed") {
        wait_gone(&sets, &set.name_any()).await;
    }
    let pods = cluster.api::<Pod>();
    for pod in pods.list(&ListParams::default()).await.expect("listed") {
        wait_gone(&pods, &pod.name_any()).await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_rollout_that_waits_for_its_pods_to_last_goes_on_once_it_need_not() {
    let cluster = cluster().await;
    let deployments = cluster.api::<Deployment>();
    create(&deployments, workload("web", "one")).await;
    let has = |replicas: i32, available: i32| {
        move |deployment: &Deployment| {
            let status = deployment.status.clone().unwrap_or_default();
            status.observed_generation == deployment.metadata.generation
                && status.updated_replicas == Some(1)
                && (status.replicas, status.available_replicas) == (Some(replicas), Some(available))
        }
    };
    wait(&deployments, "web", "one is available", has(1, 1)).await;
    let template = json!({"spec": {"containers": [{"name": "c", "image": "two"}]}});
    let next =
        json!({"spec": {"minReadySeconds": 3600, "progressDeadlineSeconds": 7200, "template": template}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(next)).await.expect("patched");
    wait(&deployments, "web", "both run, and only the old one lasts", has(2, 1)).await;
    let sooner = json!({"spec": {"minReadySeconds": 0}});
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(sooner)).await.expect("patched");
    wait(&deployments, "web", "only the new one is left", has(1, 1)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_daemon_set_has_a_pod_on_every_node() {
    let cluster = cluster().await;
    let sets = cluster.api::<DaemonSet>();
    create(&sets, workload("agent", "one")).await;
    wait(&sets, "agent", "both nodes have one", |set| {
        set.status
            .as_ref()
            .is_some_and(|status| status.number_ready == 2 && status.desired_number_scheduled == 2)
    })
    .await;
    let late = NodeSpec { cloud: CloudProvider::None, ..NodeSpec::new("node-2") };
    cluster.running.nodes().add(late).expect("added");
    wait(&sets, "agent", "the late node has one", |set| {
        set.status.as_ref().is_some_and(|status| status.number_ready == 3)
    })
    .await;
    cluster.stop().await;
}

#[tokio::test]
async fn the_pods_of_a_stateful_set_have_names_and_are_replaced_one_by_one() {
    let cluster = cluster().await;
    let sets = cluster.api::<StatefulSet>();
    let mut body = workload("db", "one");
    body["spec"]["serviceName"] = json!("db");
    body["spec"]["replicas"] = json!(2);
    create(&sets, body).await;
    let settled = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        status.observed_generation == set.metadata.generation
            && (status.ready_replicas, status.updated_replicas) == (set.spec.replicas, set.spec.replicas)
    };
    wait(&sets, "db", "both are ready", settled).await;
    let pods = cluster.api::<Pod>();
    let first = pods.get("db-0").await.expect("the first");
    let second = pods.get("db-1").await.expect("the second");
    assert!(first.metadata.creation_timestamp <= second.metadata.creation_timestamp);
    assert_eq!(second.labels()["statefulset.kubernetes.io/pod-name"], "db-1");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}}});
    sets.patch("db", &PatchParams::default(), &Patch::Strategic(&image)).await.expect("changed");
    wait(&sets, "db", "both are of the new template", settled).await;
    let uid = |pod: &Pod| pod.uid();
    let replaced = pods.get("db-0").await.expect("the first again");
    assert_ne!(uid(&replaced), uid(&first));
    let fewer = json!({"spec": {"replicas": 1}});
    sets.patch("db", &PatchParams::default(), &Patch::Merge(&fewer)).await.expect("changed");
    wait_gone(&pods, "db-1").await;
    sets.delete("db", &Default::default()).await.expect("deleted");
    wait_gone(&pods, "db-0").await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_namespace_is_furnished_and_goes_with_everything_in_it() {
    let cluster = cluster().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    create(&namespaces, json!({"metadata": {"name": "temporary"}})).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), "temporary");
    wait(&accounts, "default", "the account is there", |_| true).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "temporary");
    wait(&maps, "kube-root-ca.crt", "the authority is there", |map| {
        map.data.iter().flatten().any(|(key, text)| key == "ca.crt" && text.contains("CERTIFICATE"))
    })
    .await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "temporary");
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "none"}]}});
    create(&pods, pod).await;
    wait(&pods, "web", "it runs", |pod| {
        pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
    })
    .await;
    namespaces.delete("temporary", &Default::default()).await.expect("deleted");
    wait_gone(&namespaces, "temporary").await;
    cluster.stop().await;
}

/// The definition of a custom resource whose objects own one another.
fn definition() -> Value {
    json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

/// An object of that custom resource; custom resources need no Rust type.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
struct Thing {
    metadata: ObjectMeta,
}

impl kube::Resource for Thing {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind(_: &()) -> std::borrow::Cow<'_, str> {
        "Thing".into()
    }

    fn group(_: &()) -> std::borrow::Cow<'_, str> {
        "example.com".into()
    }

    fn version(_: &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> std::borrow::Cow<'_, str> {
        "things".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test]
async fn owners_of_every_kind_that_is_served_go_with_what_they_own() {
    let cluster = cluster().await;
    // A built-in kind that no controller here watches.
    let (roles, maps) = (cluster.api::<Role>(), cluster.api::<ConfigMap>());
    let owned_by = |api_version: &str, kind: &str, owner: &ObjectMeta, name: &str| {
        json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": api_version, "kind": kind,
            "name": owner.name, "uid": owner.uid, "blockOwnerDeletion": true}]}})
    };
    let role = create(&roles, json!({"metadata": {"name": "owner"}})).await;
    create(&maps, owned_by("rbac.authorization.k8s.io/v1", "Role", &role.metadata, "of-role")).await;
    roles.delete("owner", &DeleteParams::foreground()).await.expect("deleted");
    wait_gone(&roles, "owner").await;
    wait_gone(&maps, "of-role").await;
    // Custom resources, defined twice.
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    for _ in 0..2 {
        create(&definitions, definition()).await;
        let things = cluster.api::<Thing>();
        let thing = create(&things, json!({"metadata": {"name": "owner"}})).await;
        create(&things, owned_by("example.com/v1", "Thing", &thing.metadata, "of-thing")).await;
        create(&maps, owned_by("example.com/v1", "Thing", &thing.metadata, "map-of-thing")).await;
        things.delete("owner", &DeleteParams::foreground()).await.expect("deleted");
        wait_gone(&things, "owner").await;
        wait_gone(&things, "of-thing").await;
        wait_gone(&maps, "map-of-thing").await;
        // With background deletion, owned objects are deleted later.
        let thing = create(&things, json!({"metadata": {"name": "other"}})).await;
        create(&maps, owned_by("example.com/v1", "Thing", &thing.metadata, "left")).await;
        things.delete("other", &DeleteParams::background()).await.expect("deleted");
        wait_gone(&maps, "left").await;
        definitions.delete("things.example.com", &DeleteParams::default()).await.expect("deleted");
        wait_gone(&definitions, "things.example.com").await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn cluster_roles_gather_the_rules_of_those_they_select() {
    let cluster = cluster().await;
    let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
    let grants = |resource: &'static str| {
        move |role: &ClusterRole| {
            let mut rules = role.rules.iter().flatten();
            rules.any(|rule| rule.resources.iter().flatten().any(|one| one == resource))
        }
    };
    for name in ["view", "edit", "admin"] {
        wait(&roles, name, "it has the rules of a new cluster", grants("pods/log")).await;
    }
    create(
        &roles,
        json!({"metadata": {"name": "view-gadgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
            "rules": [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["gadgets"]}]}),
    )
    .await;
    for name in ["view", "edit", "admin"] {
        wait(&roles, name, "what is added later is gathered, too", grants("gadgets")).await;
    }
    roles.delete("view-gadgets", &DeleteParams::default()).await.expect("deleted");
    let gone = grants("gadgets");
    wait(&roles, "admin", "what is deleted is gathered no more", |role| !gone(role)).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_made_by_hand_is_furnished_as_any_other() {
    let cluster = cluster().await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let ttl =
        |node: &Node| node.annotations().get("node.alpha.kubernetes.io/ttl").is_some_and(|ttl| ttl == "0");
    wait(&nodes, "node-0", "a kubelet's Node says how long Secrets may be kept", ttl).await;
    create(&nodes, json!({"metadata": {"name": "by-hand"}})).await;
    let taints = |node: &Node| -> Vec<String> {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    };
    wait(&nodes, "by-hand", "no kubelet has reported that it is not ready", |node| {
        ttl(node) && taints(node).is_empty()
    })
    .await;
    let not_ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R",
        "lastHeartbeatTime": Timestamp::now().to_string(), "lastTransitionTime": Timestamp::now().to_string()}]}});
    nodes.patch_status("by-hand", &PatchParams::default(), &Patch::Merge(not_ready)).await.expect("patched");
    let expected = ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"];
    wait(&nodes, "by-hand", "it is tainted", |node| taints(node) == expected).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_claim_goes_when_no_pod_uses_it_any_more() {
    let cluster = cluster().await;
    let (claims, pods) = (cluster.api::<PersistentVolumeClaim>(), cluster.api::<Pod>());
    for name in ["used", "free"] {
        create(
            &claims,
            json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}),
        )
        .await;
    }
    create(
        &pods,
        json!({"metadata": {"name": "user"}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]}}),
    )
    .await;
    for name in ["used", "free"] {
        claims.delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    wait_gone(&claims, "free").await;
    let waits = claims.get("used").await.expect("it is used");
    assert!(waits.metadata.deletion_timestamp.is_some());
    pods.delete("user", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    wait_gone(&claims, "used").await;
    cluster.stop().await;
}
