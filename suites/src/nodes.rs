//! How most checks of Nodes begin: a machine exists in the cloud, its Node registers, the CCM initialises it.

use crate::judges::initialised;
use harness::check::Stop;
use harness::cloud::Instance;
use harness::cx::{CheckCx, NodePlan};
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

/// Puts the instance into the cloud, registers the Node and waits until the CCM has initialised it.
pub(crate) async fn joins(cx: &CheckCx, instance: &Instance, plan: NodePlan) -> Result<Arc<Node>, Stop> {
    cx.put_instance(instance).await?;
    let node = cx.create_node(plan).await?;
    becomes_initialised(cx, "the taint goes", node.metadata.name.as_deref().unwrap_or_default()).await
}

/// Waits B-WATCH for the Node to lose the uninitialized taint; the Node as it was then.
pub(crate) async fn becomes_initialised(cx: &CheckCx, promise: &str, node: &str) -> Result<Arc<Node>, Stop> {
    cx.eventually(promise, cx.limits().watch(), async || Ok(cx.find_node(node)), initialised()).await
}
