//! A simulated pod network: it is set up when the one of a cell or its manifests would be.

use super::observe::{is_addressed, runs};
use super::variant::Variant;
use bootstrap::{Cluster, Cni};
use harness_core::check::chain;
use harness_session::k8s::ClusterCaches;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

/// The folders in which a network plugin installs its configuration and its programs.
const CNI_FOLDERS: [&str; 2] = ["/etc/cni", "/opt/cni"];

/// The DaemonSet that is the manifests' network plugin: the one that mounts the plugins' folders.
pub(super) fn plugin(variant: &Variant) -> Option<String> {
    let mounts = |document: &&Value| {
        let volumes = harness_session::ccm::pod_spec(document)["volumes"].as_array();
        volumes.into_iter().flatten().any(|volume| {
            let path = volume["hostPath"]["path"].as_str().unwrap_or_default();
            CNI_FOLDERS.iter().any(|folder| path.starts_with(folder))
        })
    };
    let sets = variant.others.iter().filter(|document| document["kind"] == "DaemonSet");
    let found = sets.filter(mounts).find_map(|set| set["metadata"]["name"].as_str());
    found.map(str::to_owned)
}

/// Whether there is a network from the start.
pub(super) fn is_there_at_once(cell: &Cluster, plugin: Option<&str>) -> bool {
    plugin.is_none() && matches!(cell.cni, Cni::Independent | Cni::StartupTaint)
}

/// Whether it waits for addresses.
fn waits(cell: &Cluster) -> bool {
    matches!(cell.cni, Cni::WaitsForAddresses | Cni::StartupTaintAndWaits | Cni::Kindnet)
}

/// Whether the network would be set up on all of these Nodes by now. A simulated one is set up everywhere at once.
pub(super) fn is_due(world: &ClusterCaches, nodes: &[String], cell: &Cluster, plugin: Option<&str>) -> bool {
    if plugin.is_none() && cell.cni == Cni::None {
        return false;
    }
    let pods = world.pods.all();
    nodes.iter().all(|name| {
        let on_node = |set: &str| {
            pods.iter().any(|pod| {
                let here = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(name);
                let own = pod.metadata.name.as_deref().is_some_and(|own| own.starts_with(&format!("{set}-")));
                here && own && runs(pod)
            })
        };
        let addressed = || world.nodes.find("", name).is_some_and(|node| is_addressed(&node));
        plugin.is_none_or(on_node) && (!waits(cell) || addressed())
    })
}

/// Sets or clears the condition that a Node has no routes, as after a restart of a CCM that manages routes.
///
/// # Errors
/// What the API server refuses.
pub(super) async fn set_network_unavailable(api: &Api<Node>, name: &str, status: &str) -> Result<(), String> {
    let condition = json!({"type": "NetworkUnavailable", "status": status, "reason": "NoRouteCreated",
        "message": "no route was created", "lastTransitionTime": jiff::Timestamp::now().to_string()});
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
    patched.map(drop).map_err(|error| format!("the condition of Node {name}: {}", chain(&error)))
}
