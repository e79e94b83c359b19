//! Removes Pods whose Node is gone after a while, because there is no kubelet to do it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;

use super::rounds::Rounds;
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

/// The name of the controller.
const WORKER: &str = "pod-garbage-collector";

struct Orphans {
    world: Arc<ControllerContext>,
    queue: Arc<Queue<String>>,
    /// The time since when each node that has Pods is missing.
    missing: Mutex<HashMap<String, Instant>>,
    rounds: Rounds,
}

/// Registers for changes and starts the worker.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let pace = &world.settings.pace;
    let orphans = Arc::new(Orphans {
        world: world.clone(),
        queue: Queue::new(),
        missing: Mutex::default(),
        rounds: Rounds::new(WORKER, pace.orphan_check, pace.seed),
    });
    let on_node = orphans.clone();
    world.nodes.on_change(move |before, after| {
        if before.is_none() || after.is_none() {
            let node = after.or(before).map(|node| node.name_any());
            node.into_iter().for_each(|name| on_node.queue.add(name));
        }
    });
    let on_pod = orphans.clone();
    world.pods.on_change(move |before, after| {
        let node = |pod: Option<&Arc<Pod>>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        if let Some(name) = node(after)
            && (node(before).is_none() || after.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some()))
        {
            on_pod.queue.add(name);
        }
    });
    let worker = orphans.clone();
    orphans.queue.spawn(&world.tasks, WORKER, 2, move |name| {
        let orphans = worker.clone();
        async move { orphans.look(&name).await }
    });
}

impl Orphans {
    async fn look(&self, node: &str) -> Outcome {
        let pods = self.world.pods_on(node);
        if self.world.node(node).is_some() || pods.is_empty() {
            self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
            return Ok(Next::Done);
        }
        let since = *self
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(node.to_owned())
            .or_insert_with(Instant::now);
        // One round notices a Pod, a later one removes it.
        let noticed = self.rounds.next(since);
        if let Some(left) = self.rounds.wait(noticed + self.world.settings.pace.orphan_grace) {
            return Ok(Next::After(left));
        }
        let client = self.world.client();
        for pod in pods {
            let key = Key::of(pod.as_ref());
            let api = writing::api_in::<Pod>(&client, &key.namespace);
            let ended = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                .is_some_and(|phase| phase == "Succeeded" || phase == "Failed");
            if !ended {
                let status = json!({"phase": "Failed"});
                match writing::patch_status(&api, &self.world.pods, &key.name, pod.uid(), status).await {
                    Err(error) if writing::is_not_found(&error) => continue,
                    other => other?,
                }
            }
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            writing::delete(&api, &self.world.pods, pod.as_ref(), at_once).await?;
        }
        Ok(Next::Done)
    }
}
