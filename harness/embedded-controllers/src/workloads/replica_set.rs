//! ReplicaSets: as many Pods as wanted; the least useful ones are deleted first.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::template::{controller_of, is_active, is_available, pod, ready_since};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::selectors::selects;
use embedded_runtime::writing;

/// The most Pods that are created or deleted in one pass.
const BURST: usize = 500;

struct Controller {
    world: Arc<ControllerContext>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Key>> = Queue::new();
    let own = queue.clone();
    world.replica_sets.on_key(move |key| own.add(key));
    let own = queue.clone();
    world.pods.on_controller("ReplicaSet", move |key| own.add(key));
    let controller = Arc::new(Controller { world: world.clone() });
    queue.spawn(&world.tasks, "replicaset", 4, move |key| {
        let controller = controller.clone();
        async move { controller.look(&key).await }
    });
}

/// The Pods of a ReplicaSet.
pub(super) fn pods_of(world: &ControllerContext, set: &ReplicaSet) -> Vec<Arc<Pod>> {
    let uid = set.uid();
    let namespace = set.namespace().unwrap_or_default();
    let mut pods = world.pods.list_in(&namespace);
    pods.retain(|pod| controller_of(pod.as_ref()) == uid.as_deref());
    pods
}

impl Controller {
    async fn look(&self, key: &Key) -> Outcome {
        let Some(set) = self.world.replica_sets.get(key) else { return Ok(Next::Done) };
        let mut failure = None;
        if set.metadata.deletion_timestamp.is_none() {
            let active: Vec<_> =
                pods_of(&self.world, &set).into_iter().filter(|pod| is_active(pod)).collect();
            let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0);
            failure = self.adjust(&set, active, wanted).await.err();
        }
        let soon = self.write_status(&set, failure.as_ref()).await?;
        match failure {
            Some(error) if !writing::is_forbidden(&error) => Err(error),
            _ => Ok(soon),
        }
    }

    async fn adjust(
        &self,
        set: &Arc<ReplicaSet>,
        active: Vec<Arc<Pod>>,
        wanted: usize,
    ) -> Result<(), kube::Error> {
        let client = self.world.client();
        let api = writing::api_in::<Pod>(&client, &set.namespace().unwrap_or_default());
        let source = Source { component: "replicaset-controller", host: None };
        let template = set.spec.template.as_ref();
        for _ in active.len()..wanted.min(active.len().saturating_add(BURST)) {
            match writing::create(&api, &self.world.pods, &pod(set.as_ref(), template)).await {
                Ok(created) => {
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
                Err(error) => {
                    let text = format!("Error creating: {error}");
                    self.world.recorder.tell(
                        &client,
                        source,
                        set.as_ref(),
                        Weight::Warning,
                        "FailedCreate",
                        text,
                    );
                    return Err(error);
                }
            }
        }
        let excess = active.len().saturating_sub(wanted);
        for gone in least_useful(active).into_iter().take(excess.min(BURST)) {
            writing::delete(&api, &self.world.pods, gone.as_ref(), DeleteParams::default()).await?;
            let text = format!("Deleted pod: {}", gone.name_any());
            self.world.recorder.tell(&client, source, set.as_ref(), Weight::Normal, "SuccessfulDelete", text);
        }
        Ok(())
    }

    async fn write_status(&self, set: &ReplicaSet, failure: Option<&kube::Error>) -> Outcome {
        let Some(set) = self.world.replica_sets.get(&Key::of(set)) else { return Ok(Next::Done) };
        let pods: Vec<_> = pods_of(&self.world, &set).into_iter().filter(|pod| is_active(pod)).collect();
        let (status, soon) = status(&set, &pods, failure.map(ToString::to_string), Timestamp::now());
        if set.status.as_ref() == Some(&status) {
            return Ok(soon);
        }
        let mut changed = set.as_ref().clone();
        changed.status = Some(status);
        writing::replace_status(&self.world.client(), &self.world.replica_sets, &changed).await?;
        Ok(soon)
    }
}

/// The Pods in the order of their deletion: unplaced, pending, not ready, ready for the shortest time.
fn least_useful(mut pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
    pods.sort_by_cached_key(|pod| {
        let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let since = ready_since(pod);
        let age = pod.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
        (placed, running, since.is_some(), std::cmp::Reverse(since), std::cmp::Reverse(age))
    });
    pods
}

/// The status of a ReplicaSet with these Pods, and when it may change by itself.
fn status(
    set: &ReplicaSet,
    pods: &[Arc<Pod>],
    failure: Option<String>,
    now: Timestamp,
) -> (ReplicaSetStatus, Next) {
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let ready = pods.iter().filter(|pod| ready_since(pod).is_some()).count();
    let available = pods.iter().filter(|pod| is_available(pod, min_ready, now.as_second())).count();
    let labels = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref())
        .and_then(|meta| meta.labels.clone())
        .unwrap_or_default();
    let labelled = |pod: &&Arc<Pod>| {
        let selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
            match_labels: Some(labels.clone()),
            ..Default::default()
        };
        selects(&selector, pod.labels())
    };
    let known = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let conditions = failure.map(|message| {
        let since = known
            .iter()
            .find(|one| one.type_.as_deref() == Some("ReplicaFailure"))
            .and_then(|one| one.last_transition_time.clone());
        vec![ReplicaSetCondition {
            type_: Some("ReplicaFailure".to_owned()),
            status: Some("True".to_owned()),
            reason: Some("FailedCreate".to_owned()),
            message: Some(message),
            last_transition_time: since.or(Some(Time(now))),
        }]
    });
    let positive = |number: usize| Some(count(number)).filter(|number| *number > 0);
    let status = ReplicaSetStatus {
        replicas: count(pods.len()),
        fully_labeled_replicas: positive(pods.iter().filter(labelled).count()),
        ready_replicas: positive(ready),
        available_replicas: positive(available),
        observed_generation: set.metadata.generation,
        conditions,
        ..ReplicaSetStatus::default()
    };
    let soon = if ready > available { Next::After(std::time::Duration::from_secs(1)) } else { Next::Done };
    (status, soon)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_of_no_use_go_first() {
        let made = |name: &str, node: bool, ready: bool| {
            let conditions = if ready { json!([{"type": "Ready", "status": "True"}]) } else { json!([]) };
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"containers": [], "nodeName": if node { Some("n") } else { None }},
                "status": {"phase": if node { "Running" } else { "Pending" }, "conditions": conditions},
            }))
            .expect("a Pod");
            Arc::new(pod)
        };
        let sorted = least_useful(vec![
            made("ready", true, true),
            made("unready", true, false),
            made("pending", false, false),
        ]);
        let names: Vec<_> = sorted.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["pending", "unready", "ready"]);
    }
}
