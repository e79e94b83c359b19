//! StatefulSets: Pods with stable names, one after another. Volume claims are not created.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::template::{controller_of, hash, is_active, is_available, pod, ready_since};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

const HASH: &str = "controller-revision-hash";
const NAME: &str = "statefulset.kubernetes.io/pod-name";
const INDEX: &str = "apps.kubernetes.io/pod-index";

struct Controller {
    world: Arc<ControllerContext>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Key>> = Queue::new();
    let own = queue.clone();
    world.stateful_sets.on_key(move |key| own.add(key));
    let own = queue.clone();
    world.pods.on_controller("StatefulSet", move |key| own.add(key));
    let controller = Arc::new(Controller { world: world.clone() });
    queue.spawn(&world.tasks, "statefulset", 1, move |key| {
        let controller = controller.clone();
        async move { controller.look(&key).await }
    });
}

/// The next action on one Pod; the others wait until it is ready, or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Create(usize),
    Delete(usize),
}

/// The Pods that a StatefulSet wants.
#[derive(Clone, Copy, Debug)]
struct Wish<'a> {
    /// The number of Pods.
    pods: usize,
    /// Whether Pods may be created and deleted together.
    parallel: bool,
    /// The revision of the template.
    current: &'a str,
    /// Pods with a lower number are not changed when the template changes; `None`: no Pod is.
    partition: Option<usize>,
}

/// The due actions on these Pods, by number.
fn deeds(here: &BTreeMap<usize, Arc<Pod>>, wish: Wish<'_>) -> Vec<Deed> {
    let leaves = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let settled =
        |number: &usize| here.get(number).is_some_and(|pod| !leaves(pod) && ready_since(pod).is_some());
    // Pods that have ended or are missing are created again.
    let ended = here
        .iter()
        .filter(|(_, pod)| !leaves(pod) && !is_active(pod))
        .map(|(number, _)| Deed::Delete(*number));
    let absent = (0..wish.pods).filter(|number| !here.contains_key(number)).map(Deed::Create);
    let excess: Vec<usize> = here
        .iter()
        .rev()
        .filter(|(number, pod)| **number >= wish.pods && !leaves(pod))
        .map(|(n, _)| *n)
        .collect();
    if wish.parallel {
        return ended.chain(absent).chain(excess.into_iter().map(Deed::Delete)).collect();
    }
    let next: Vec<Deed> = ended.collect();
    if !next.is_empty() {
        return next;
    }
    // The lowest missing one, when all below it are ready.
    let first = (0..wish.pods).find(|number| !settled(number));
    match first {
        Some(number) if !here.contains_key(&number) => return vec![Deed::Create(number)],
        Some(_) => return Vec::new(),
        None => {}
    }
    if here.values().any(|pod| leaves(pod)) {
        return Vec::new();
    }
    if let Some(highest) = excess.first() {
        return vec![Deed::Delete(*highest)];
    }
    // The highest with an older template.
    let older = |(number, pod): &(&usize, &Arc<Pod>)| {
        wish.partition.is_some_and(|partition| **number >= partition)
            && pod.labels().get(HASH).map(String::as_str) != Some(wish.current)
    };
    here.iter().rev().find(older).map(|(number, _)| Deed::Delete(*number)).into_iter().collect()
}

impl Controller {
    fn pods(&self, set: &StatefulSet) -> BTreeMap<usize, Arc<Pod>> {
        let (uid, prefix) = (set.uid(), format!("{}-", set.name_any()));
        let pods = self.world.pods.list_in(&set.namespace().unwrap_or_default());
        let number = |pod: &Pod| pod.name_any().strip_prefix(&prefix)?.parse().ok();
        pods.into_iter()
            .filter(|pod| controller_of(pod.as_ref()) == uid.as_deref())
            .filter_map(|pod| Some((number(&pod)?, pod)))
            .collect()
    }

    async fn look(&self, key: &Key) -> Outcome {
        let Some(set) = self.world.stateful_sets.get(key) else { return Ok(Next::Done) };
        let current = revision(&set);
        if set.metadata.deletion_timestamp.is_none() {
            let strategy = set.spec.update_strategy.clone().unwrap_or_default();
            let partition = strategy.rolling_update.and_then(|rolling| rolling.partition).unwrap_or(0);
            let rolls = strategy.type_.as_deref() != Some("OnDelete");
            let wish = Wish {
                pods: usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(0),
                parallel: set.spec.pod_management_policy.as_deref() == Some("Parallel"),
                current: &current,
                partition: rolls.then(|| usize::try_from(partition).unwrap_or(0)),
            };
            let here = self.pods(&set);
            for deed in deeds(&here, wish) {
                self.act(&set, deed, &here, &current).await?;
            }
        }
        self.write_status(&set, &current).await
    }

    async fn act(
        &self,
        set: &Arc<StatefulSet>,
        deed: Deed,
        here: &BTreeMap<usize, Arc<Pod>>,
        current: &str,
    ) -> Result<(), kube::Error> {
        let client = self.world.client();
        let api = writing::api_in::<Pod>(&client, &set.namespace().unwrap_or_default());
        let (reason, text) = match deed {
            Deed::Create(number) => {
                let wanted = member(set, number, current);
                match writing::create(&api, &self.world.pods, &wanted).await {
                    Err(error) if writing::is_already_exists(&error) => return Ok(()),
                    made => drop(made?),
                }
                let text = format!("create Pod {0}-{number} in StatefulSet {0} successful", set.name_any());
                ("SuccessfulCreate", text)
            }
            Deed::Delete(number) => {
                let Some(gone) = here.get(&number) else { return Ok(()) };
                writing::delete(&api, &self.world.pods, gone.as_ref(), DeleteParams::default()).await?;
                let text = format!("delete Pod {0}-{number} in StatefulSet {0} successful", set.name_any());
                ("SuccessfulDelete", text)
            }
        };
        let source = Source { component: "statefulset-controller", host: None };
        self.world.recorder.tell(&client, source, set.as_ref(), Weight::Normal, reason, text);
        Ok(())
    }

    async fn write_status(&self, set: &StatefulSet, current: &str) -> Outcome {
        let Some(set) = self.world.stateful_sets.get(&Key::of(set)) else { return Ok(Next::Done) };
        let here = self.pods(&set);
        let (status, soon) = status(&set, &here, current, Timestamp::now());
        if set.status.as_ref() == Some(&status) {
            return Ok(soon);
        }
        let mut changed = set.as_ref().clone();
        changed.status = Some(status);
        writing::replace_status(&self.world.client(), &self.world.stateful_sets, &changed).await?;
        Ok(soon)
    }
}

/// The name of the template's revision, which is in Pods and in the status.
fn revision(set: &StatefulSet) -> String {
    format!("{}-{}", set.name_any(), hash(&set.spec.template, 0))
}

/// The Pod with this number.
fn member(set: &StatefulSet, number: usize, current: &str) -> Pod {
    let mut made = pod(set, Some(&set.spec.template));
    let name = format!("{}-{number}", set.name_any());
    made.metadata.generate_name = None;
    let labels = [(HASH, current.to_owned()), (NAME, name.clone()), (INDEX, number.to_string())];
    made.metadata.labels.get_or_insert_default().extend(labels.map(|(key, value)| (key.to_owned(), value)));
    if let Some(spec) = &mut made.spec {
        spec.hostname = Some(name.clone());
        spec.subdomain = set.spec.service_name.clone().filter(|service| !service.is_empty());
    }
    made.metadata.name = Some(name);
    made
}

/// The status of a StatefulSet with these Pods, and when it may change by itself.
fn status(
    set: &StatefulSet,
    here: &BTreeMap<usize, Arc<Pod>>,
    current: &str,
    now: Timestamp,
) -> (StatefulSetStatus, Next) {
    let min_ready = set.spec.min_ready_seconds.unwrap_or(0);
    let count = |fits: &dyn Fn(&Pod) -> bool| {
        i32::try_from(here.values().filter(|pod| is_active(pod) && fits(pod)).count()).unwrap_or(i32::MAX)
    };
    let ready = count(&|pod| ready_since(pod).is_some());
    let available = count(&|pod| is_available(pod, min_ready, now.as_second()));
    let updated = count(&|pod| pod.labels().get(HASH).map(String::as_str) == Some(current));
    let revision = current.to_owned();
    let known = set.status.as_ref().and_then(|status| status.current_revision.clone());
    let replicas = count(&|_| true);
    let positive = |number: i32| Some(number).filter(|number| *number > 0);
    let status = StatefulSetStatus {
        replicas,
        ready_replicas: positive(ready),
        available_replicas: Some(available),
        current_replicas: positive(updated),
        updated_replicas: positive(updated),
        // The old revision is the current one until the last Pod has the new one.
        current_revision: if updated == replicas {
            Some(revision.clone())
        } else {
            known.or(Some(revision.clone()))
        },
        update_revision: Some(revision),
        observed_generation: set.metadata.generation,
        collision_count: Some(0),
        ..StatefulSetStatus::default()
    };
    let soon = if ready > available { Next::After(std::time::Duration::from_secs(1)) } else { Next::Done };
    (status, soon)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(ready: bool, revision: &str, leaving: bool) -> Arc<Pod> {
        let conditions = if ready { json!([{"type": "Ready", "status": "True"}]) } else { json!([]) };
        let deleted = leaving.then_some("2026-01-01T00:00:00Z");
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "x", "labels": {HASH: revision}, "deletionTimestamp": deleted},
            "status": {"phase": "Running", "conditions": conditions},
        }));
        Arc::new(pod.expect("a Pod"))
    }

    #[test]
    fn pods_bear_the_revision_that_the_status_names() {
        let set = json!({"metadata": {"name": "db"}, "spec": {"selector": {}, "serviceName": "db",
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": []}}}});
        let set: StatefulSet = serde_json::from_value(set).expect("a StatefulSet");
        let current = revision(&set);
        let pod = super::member(&set, 0, &current);
        let here = BTreeMap::from([(0, Arc::new(pod.clone()))]);
        let (status, _) = status(&set, &here, &current, Timestamp::UNIX_EPOCH);
        assert_eq!(pod.labels().get(HASH), status.current_revision.as_ref());
        assert!(status.current_revision.is_some_and(|name| name.starts_with("db-")));
        assert_eq!(status.updated_replicas, Some(1));
    }

    fn wish(pods: usize) -> Wish<'static> {
        Wish { pods, parallel: false, current: "new", partition: Some(0) }
    }

    #[test]
    fn pods_come_one_after_another_and_the_highest_goes_first() {
        let mut here = BTreeMap::new();
        assert_eq!(deeds(&here, wish(2)), [Deed::Create(0)]);
        here.insert(0, member(false, "new", false));
        assert_eq!(deeds(&here, wish(2)), [], "the first is not ready yet");
        here.insert(0, member(true, "new", false));
        assert_eq!(deeds(&here, wish(2)), [Deed::Create(1)]);
        here.insert(1, member(true, "new", false));
        assert_eq!(deeds(&here, wish(2)), []);
        assert_eq!(deeds(&here, wish(0)), [Deed::Delete(1)]);
        here.insert(1, member(true, "new", true));
        assert_eq!(deeds(&here, wish(0)), [], "one is on its way out");
        here.remove(&1);
        assert_eq!(deeds(&here, wish(0)), [Deed::Delete(0)]);
    }

    #[test]
    fn a_change_of_the_template_reaches_the_highest_first_and_stops_at_the_partition() {
        let here = BTreeMap::from([(0, member(true, "old", false)), (1, member(true, "old", false))]);
        assert_eq!(deeds(&here, wish(2)), [Deed::Delete(1)]);
        assert_eq!(deeds(&here, Wish { partition: None, ..wish(2) }), []);
        let here = BTreeMap::from([(0, member(true, "old", false)), (1, member(true, "new", false))]);
        assert_eq!(deeds(&here, Wish { partition: Some(1), ..wish(2) }), []);
        assert_eq!(deeds(&here, wish(2)), [Deed::Delete(0)]);
    }

    #[test]
    fn in_parallel_all_come_and_go_at_once() {
        let parallel = Wish { parallel: true, ..wish(3) };
        assert_eq!(deeds(&BTreeMap::new(), parallel), [Deed::Create(0), Deed::Create(1), Deed::Create(2)]);
        let here = BTreeMap::from([(0, member(false, "new", false)), (3, member(false, "new", false))]);
        assert_eq!(deeds(&here, parallel), [Deed::Create(1), Deed::Create(2), Deed::Delete(3)]);
    }
}
