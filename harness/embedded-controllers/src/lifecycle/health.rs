//! Watches kubelets' heartbeats: a silent one makes its Node Unknown, then tainted; its Pods become not ready.
//!
//! A heartbeat counts when its change is seen, by this process's clock: a kubelet's clock is never trusted.
//! In rounds ([`Rounds`]), silence is noticed, and Pods are evicted or not evicted any more; new Pods are
//! kept off at once. Nodes are tainted without the rate limit of the real controller (one in ten seconds).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use serde_json::json;
use tokio::time::Instant;

use super::rounds::Rounds;
use super::verdict::{self, Disruption, Driving};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::node;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

struct Health {
    world: Arc<ControllerContext>,
    nodes: Arc<Queue<String>>,
    pods: Arc<Queue<String>>,
    seen: Mutex<HashMap<String, Instant>>,
    ready: Mutex<std::collections::HashSet<String>>,
    rounds: Rounds,
    /// The time since when the eviction of Pods from a Node is due to begin or to stop.
    driving: Mutex<HashMap<String, Instant>>,
}

/// The name of the controller.
const WORKER: &str = "node-lifecycle";

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let health = Arc::new(Health {
        world: world.clone(),
        nodes: Queue::new(),
        pods: Queue::new(),
        seen: Mutex::default(),
        ready: Mutex::default(),
        rounds: Rounds::new(WORKER, world.settings.pace.node_check, world.settings.pace.seed),
        driving: Mutex::default(),
    });
    let on_node = health.clone();
    world.nodes.on_change(move |before, after| {
        on_node.node_changed(before.map(Arc::as_ref), after.map(Arc::as_ref))
    });
    let on_lease = health.clone();
    world.leases.on_change(move |before, after| {
        let renewed =
            |lease: Option<&Arc<Lease>>| lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
        if let Some(lease) = after
            && renewed(before) != renewed(after)
        {
            on_lease.heard_of(&lease.name_any());
        }
    });
    let nodes = health.clone();
    health.nodes.spawn(&world.tasks, WORKER, 8, move |name| {
        let health = nodes.clone();
        async move { health.look(&name).await }
    });
    let pods = health.clone();
    health.pods.spawn(&world.tasks, "node-lifecycle-pods", 4, move |name| {
        let health = pods.clone();
        async move { health.mark_pods(&name).await }
    });
}

impl Health {
    fn heard_of(&self, name: &str) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Instant::now());
    }

    fn node_changed(&self, before: Option<&Node>, after: Option<&Node>) {
        let Some(name) = after.or(before).map(ResourceExt::name_any) else { return };
        let heartbeat = |node: Option<&Node>| {
            node.and_then(|node| node::condition(node, "Ready"))
                .and_then(|ready| ready.last_heartbeat_time.clone())
        };
        if after.is_some() && (before.is_none() || heartbeat(before) != heartbeat(after)) {
            self.heard_of(&name);
        }
        if after.is_none() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            self.driving.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            self.nodes.forget(&name);
        }
        let is_ready = after.is_some_and(node::is_ready);
        let full_changed = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            let full = ready.is_empty();
            if is_ready {
                ready.insert(name.clone());
            } else {
                ready.remove(&name);
            }
            full != ready.is_empty()
        };
        if full_changed {
            for node in self.world.nodes.list() {
                self.nodes.add(node.name_any());
            }
        }
        if after.is_some() {
            if before.is_some_and(node::is_ready) && !is_ready {
                self.pods.add(name.clone());
            }
            self.nodes.add(name);
        }
    }

    async fn look(&self, name: &str) -> Outcome {
        let Some(node) = self.world.node(name) else { return Ok(Next::Done) };
        let pace = &self.world.settings.pace;
        let posted = node::condition(&node, "Ready").is_some();
        let grace = if posted { pace.node_grace } else { pace.node_startup_grace };
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        let silent_in = self.rounds.wait(seen.unwrap_or_else(Instant::now) + grace);
        let api = writing::api::<Node>(&self.world.client());
        if silent_in.is_none() {
            let conditions = verdict::unknown(&node, Timestamp::now());
            if !conditions.is_empty() {
                let status = json!({"conditions": conditions});
                writing::patch_status(&api, &self.world.nodes, name, node.uid(), status).await?;
                self.tell(&node, "NodeNotReady", &format!("Node {name} status is now: NodeNotReady"));
                // The answer is in the cache and has put this key back into the queue: the taints are set then.
                return Ok(Next::Done);
            }
        }
        let disruption = if self.ready.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            Disruption::Full
        } else {
            Disruption::Partial
        };
        let driven_in = self.driven_in(&node, disruption);
        let driving = if driven_in.is_none() { Driving::Now } else { Driving::Later };
        if let Some(taints) = verdict::taints(&node, disruption, driving, Timestamp::now()) {
            writing::merge_if_unchanged(&api, &self.world.nodes, &node, json!({"spec": {"taints": taints}}))
                .await?;
        }
        Ok(silent_in.into_iter().chain(driven_in).min().map_or(Next::Done, Next::After))
    }

    /// How long it is until the round that begins or stops the eviction of Pods from a Node; `None` if that
    /// is now, or not needed.
    fn driven_in(&self, node: &Node, disruption: Disruption) -> Option<Duration> {
        let name = node.name_any();
        let mut driving = self.driving.lock().unwrap_or_else(PoisonError::into_inner);
        if verdict::drives_as_it_has_to(node, disruption) {
            driving.remove(&name);
            return None;
        }
        let since = *driving.entry(name).or_insert_with(Instant::now);
        self.rounds.wait(since)
    }

    /// Marks the Pods of a Node that is not ready any more as not ready.
    async fn mark_pods(&self, name: &str) -> Outcome {
        let client = self.world.client();
        for pod in self.world.pods_on(name) {
            let ready = pod
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_ref()?.iter().find(|one| one.type_ == "Ready"));
            if ready.is_none_or(|ready| ready.status != "True") {
                continue;
            }
            let key = Key::of(pod.as_ref());
            let status = json!({"conditions": [{
                "type": "Ready", "status": "False", "lastTransitionTime": Timestamp::now().to_string()
            }]});
            let api = writing::api_in::<Pod>(&client, &key.namespace);
            match writing::patch_status(&api, &self.world.pods, &key.name, pod.uid(), status).await {
                Err(error) if writing::is_not_found(&error) => {}
                other => other?,
            }
            let source = Source { component: "node-controller", host: None };
            self.world.recorder.tell(
                &client,
                source,
                pod.as_ref(),
                Weight::Warning,
                "NodeNotReady",
                "Node is not ready".to_owned(),
            );
        }
        Ok(Next::Done)
    }

    fn tell(&self, node: &Node, reason: &str, message: &str) {
        let source = Source { component: "node-controller", host: None };
        self.world.recorder.tell(
            &self.world.client(),
            source,
            node,
            Weight::Normal,
            reason,
            message.to_owned(),
        );
    }
}
