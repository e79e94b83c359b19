//! A pod network that removes its startup taint from a Node once it is set up there.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use embedded_runtime::context::ControllerContext;
use embedded_runtime::node::{network_ready, node_taints};
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::settings::PodNetwork;
use embedded_runtime::writing;

/// Registers for changes and starts the worker, which acts only with such a pod network.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<String>> = Queue::new();
    let own = queue.clone();
    world.nodes.on_key(move |key| own.add(key.name));
    let known = world.clone();
    queue.spawn(&world.tasks, "cni", 4, move |name| {
        let world = known.clone();
        async move { look(&world, &name).await }
    });
}

async fn look(world: &ControllerContext, name: &str) -> Outcome {
    let network = world.network();
    let PodNetwork::StartupTaint { key, .. } = &network else { return Ok(Next::Done) };
    let Some(node) = world.node(name) else { return Ok(Next::Done) };
    let taints = node_taints(&node);
    if !network_ready(&network, Some(&node)) || !taints.iter().any(|taint| taint.key == *key) {
        return Ok(Next::Done);
    }
    let left: Vec<_> = taints.iter().filter(|taint| taint.key != *key).collect();
    let api = writing::api::<Node>(&world.client());
    let change = json!({"spec": {"taints": left}});
    writing::merge_if_unchanged(&api, &world.nodes, node.as_ref(), change).await?;
    Ok(Next::Done)
}
