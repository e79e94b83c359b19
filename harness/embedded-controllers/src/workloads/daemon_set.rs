//! DaemonSets: one Pod on each Node that has to have one.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::daemon::{self, Place};
use super::rollout::{Round, resolve};
use super::template::{controller_of, hash, is_active, is_available, ready_since};
use crate::scheduler::filter::named_nodes;
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::node::node_taints;
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

const HASH: &str = "controller-revision-hash";

struct Controller {
    world: Arc<ControllerContext>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Key>> = Queue::new();
    let own = queue.clone();
    world.daemon_sets.on_key(move |key| own.add(key));
    let own = queue.clone();
    world.pods.on_controller("DaemonSet", move |key| own.add(key));
    let (own, known) = (queue.clone(), world.clone());
    world.nodes.on_change(move |before, after| {
        let matters = |node: &Arc<Node>| (node.labels().clone(), node_taints(node).to_vec());
        if before.map(matters) != after.map(matters) {
            for set in known.daemon_sets.list() {
                own.add(Key::of(set.as_ref()));
            }
        }
    });
    let controller = Arc::new(Controller { world: world.clone() });
    queue.spawn(&world.tasks, "daemonset", 2, move |key| {
        let controller = controller.clone();
        async move { controller.look(&key).await }
    });
}

/// The Node that a Pod is on, or is meant for.
fn node_of(pod: &Pod) -> Option<String> {
    let placed = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|name| !name.is_empty());
    placed.or_else(|| named_nodes(pod)?.into_iter().next())
}

impl Controller {
    fn pods_by_node(&self, set: &DaemonSet) -> BTreeMap<String, Vec<Arc<Pod>>> {
        let uid = set.uid();
        let mut result: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in self.world.pods.list_in(&set.namespace().unwrap_or_default()) {
            if controller_of(pod.as_ref()) == uid.as_deref()
                && let Some(node) = node_of(&pod)
            {
                result.entry(node).or_default().push(pod);
            }
        }
        result
    }

    async fn look(&self, key: &Key) -> Outcome {
        let Some(set) = self.world.daemon_sets.get(key) else { return Ok(Next::Done) };
        let nodes = self.world.nodes.list();
        let places: BTreeMap<String, Place> =
            nodes.iter().map(|node| (node.name_any(), daemon::place(&set, node))).collect();
        let current = hash(&set.spec.template, 0);
        if set.metadata.deletion_timestamp.is_none() {
            self.adjust(&set, &places, &current).await?;
            self.update(&set, &places, &current).await?;
        }
        self.write_status(&set, &places, &current).await
    }

    async fn adjust(
        &self,
        set: &Arc<DaemonSet>,
        places: &BTreeMap<String, Place>,
        current: &str,
    ) -> Result<(), kube::Error> {
        let client = self.world.client();
        let api = writing::api_in::<Pod>(&client, &set.namespace().unwrap_or_default());
        let source = Source { component: "daemonset-controller", host: None };
        let pods = self.pods_by_node(set);
        for (node, place) in places {
            let here = pods.get(node).map(Vec::as_slice).unwrap_or_default();
            let mut active = here.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let first = active.next();
            if place.should_run && here.is_empty() {
                let created =
                    writing::create(&api, &self.world.pods, &daemon::pod(set, node, current)).await?;
                let text = format!("Created pod: {}", created.name_any());
                self.world.recorder.tell(
                    &client,
                    source,
                    set.as_ref(),
                    Weight::Normal,
                    "SuccessfulCreate",
                    text,
                );
            }
            let ended = first.filter(|pod| !is_active(pod) || !place.may_stay);
            for gone in active.chain(ended) {
                writing::delete(&api, &self.world.pods, gone.as_ref(), DeleteParams::default()).await?;
                let text = format!("Deleted pod: {}", gone.name_any());
                self.world.recorder.tell(
                    &client,
                    source,
                    set.as_ref(),
                    Weight::Normal,
                    "SuccessfulDelete",
                    text,
                );
            }
        }
        // A Pod that was never placed and whose Node is gone will never run.
        for (_, gone) in pods.iter().filter(|(node, _)| !places.contains_key(*node)) {
            for pod in
                gone.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()))
            {
                writing::delete(&api, &self.world.pods, pod.as_ref(), DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    /// Replaces Pods of an older template, as many at once as may be unavailable.
    async fn update(
        &self,
        set: &Arc<DaemonSet>,
        places: &BTreeMap<String, Place>,
        current: &str,
    ) -> Result<(), kube::Error> {
        let strategy = set.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return Ok(());
        }
        let wanted = places.values().filter(|place| place.should_run).count();
        let limit = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.max_unavailable.as_ref());
        let limit = resolve(limit, i32::try_from(wanted).unwrap_or(i32::MAX), Round::Up).max(1);
        let pods = self.pods_by_node(set);
        let now = Timestamp::now().as_second();
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        let up = pods
            .values()
            .filter(|here| here.iter().any(|pod| is_active(pod) && is_available(pod, min_ready, now)))
            .count();
        let mut may_go = usize::try_from(limit).unwrap_or(1).saturating_sub(wanted.saturating_sub(up));
        let api = writing::api_in::<Pod>(&self.world.client(), &set.namespace().unwrap_or_default());
        let old = pods.values().flatten().filter(|pod| is_active(pod));
        for pod in old.filter(|pod| pod.labels().get(HASH).map(String::as_str) != Some(current)) {
            // A Pod that is not available can be replaced without a loss.
            let costs = is_available(pod, min_ready, now);
            if costs && may_go == 0 {
                continue;
            }
            may_go -= usize::from(costs);
            writing::delete(&api, &self.world.pods, pod.as_ref(), DeleteParams::default()).await?;
        }
        Ok(())
    }

    async fn write_status(
        &self,
        set: &DaemonSet,
        places: &BTreeMap<String, Place>,
        current: &str,
    ) -> Outcome {
        let pods = self.pods_by_node(set);
        let now = Timestamp::now().as_second();
        let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
        let count = |holds: &dyn Fn(&str, &Place) -> bool| {
            let number = places.iter().filter(|(node, place)| holds(node, place)).count();
            i32::try_from(number).unwrap_or(i32::MAX)
        };
        let has = |node: &str, what: &dyn Fn(&Pod) -> bool| {
            pods.get(node).is_some_and(|here| here.iter().any(|pod| is_active(pod) && what(pod)))
        };
        let wanted = count(&|_, place| place.should_run);
        let ready = count(&|node, place| place.should_run && has(node, &|pod| ready_since(pod).is_some()));
        let available =
            count(&|node, place| place.should_run && has(node, &|pod| is_available(pod, min_ready, now)));
        let updated = count(&|node, place| {
            place.should_run && has(node, &|pod| pod.labels().get(HASH).map(String::as_str) == Some(current))
        });
        let positive = |number: i32| Some(number).filter(|number| *number > 0);
        let status = DaemonSetStatus {
            current_number_scheduled: count(&|node, place| place.should_run && has(node, &|_| true)),
            desired_number_scheduled: wanted,
            number_ready: ready,
            number_available: positive(available),
            number_misscheduled: count(&|node, place| !place.should_run && has(node, &|_| true)),
            number_unavailable: positive(wanted.saturating_sub(available)),
            updated_number_scheduled: positive(updated),
            observed_generation: set.metadata.generation,
            ..DaemonSetStatus::default()
        };
        let again =
            if ready > available { Next::After(std::time::Duration::from_secs(1)) } else { Next::Done };
        let Some(known) = self.world.daemon_sets.get(&Key::of(set)) else { return Ok(Next::Done) };
        if known.status.as_ref() == Some(&status) {
            return Ok(again);
        }
        let mut changed = known.as_ref().clone();
        changed.status = Some(status);
        writing::replace_status(&self.world.client(), &self.world.daemon_sets, &changed).await?;
        Ok(again)
    }
}
