//! Evicts Pods from Nodes with NoExecute taints that they do not tolerate, or no longer tolerate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;

use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::node::node_taints;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::taints::{NO_EXECUTE, Stay, may_stay};
use embedded_runtime::writing;

struct Eviction {
    world: Arc<ControllerContext>,
    queue: Arc<Queue<Key>>,
    /// The time since when each Pod (by uid) is on a Node where it may only stay for a limited time.
    since: Mutex<HashMap<String, Instant>>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let eviction =
        Arc::new(Eviction { world: world.clone(), queue: Queue::new(), since: Mutex::new(HashMap::new()) });
    let on_node = eviction.clone();
    world.nodes.on_change(move |before, after| {
        let driven = |node: Option<&Arc<Node>>| -> Vec<_> {
            node.map(|node| {
                node_taints(node).iter().filter(|taint| taint.effect == NO_EXECUTE).cloned().collect()
            })
            .unwrap_or_default()
        };
        if let Some(node) = after
            && driven(before) != driven(after)
        {
            for key in on_node.world.placed.on(&node.name_any()) {
                on_node.queue.add(key);
            }
        }
    });
    let on_pod = eviction.clone();
    world.pods.on_change(move |before, after| {
        let node = |pod: Option<&Arc<Pod>>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        match after {
            Some(pod) if node(after).is_some() && node(before).is_none() => {
                on_pod.queue.add(Key::of(pod.as_ref()))
            }
            Some(_) => {}
            None => {
                if let Some(pod) = before {
                    on_pod.queue.forget(&Key::of(pod.as_ref()));
                    on_pod.take(&pod.uid().unwrap_or_default());
                }
            }
        }
    });
    let worker = eviction.clone();
    eviction.queue.spawn(&world.tasks, "taint-eviction", 4, move |key| {
        let eviction = worker.clone();
        async move { eviction.look(&key).await }
    });
}

impl Eviction {
    fn take(&self, uid: &str) -> Option<Instant> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(uid)
    }

    async fn look(&self, key: &Key) -> Outcome {
        let Some(pod) = self.world.pods.get(key) else { return Ok(Next::Done) };
        let uid = pod.uid().unwrap_or_default();
        let Some(spec) = &pod.spec else { return Ok(Next::Done) };
        let Some(node) = spec.node_name.as_deref().and_then(|name| self.world.node(name)) else {
            return Ok(Next::Done);
        };
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let limit = match may_stay(node_taints(&node), spec.tolerations.as_deref().unwrap_or_default()) {
            Stay::Forever => {
                if self.take(&uid).is_some() {
                    self.tell(&pod, &format!("Cancelling deletion of Pod {}/{}", key.namespace, key.name));
                }
                return Ok(Next::Done);
            }
            Stay::For(limit) => limit,
        };
        let since = *self
            .since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(uid)
            .or_insert_with(Instant::now);
        let left = limit.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Ok(Next::After(left));
        }
        self.tell(&pod, &format!("Marking for deletion Pod {}/{}", key.namespace, key.name));
        let api = writing::api_in::<Pod>(&self.world.client(), &key.namespace);
        let status = json!({"conditions": [{
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": Timestamp::now().to_string(),
        }]});
        match writing::patch_status(&api, &self.world.pods, &key.name, pod.uid(), status).await {
            Err(error) if writing::is_not_found(&error) => return Ok(Next::Done),
            other => other?,
        }
        writing::delete(&api, &self.world.pods, pod.as_ref(), DeleteParams::default()).await?;
        Ok(Next::Done)
    }

    fn tell(&self, pod: &Pod, message: &str) {
        let source = Source { component: "taint-eviction-controller", host: None };
        let client = self.world.client();
        self.world.recorder.tell(
            &client,
            source,
            pod,
            Weight::Normal,
            "TaintManagerEviction",
            message.to_owned(),
        );
    }
}
