//! Places Pods on Nodes: one Pod at a time, and again after a change that may help.

mod affinity;
pub(crate) mod filter;
mod site;
mod spread;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use self::site::{Site, Sites};
use self::words::Preemption;
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

/// The name of this scheduler in Pods.
const NAME: &str = "default-scheduler";
const SOURCE: Source<'static> = Source { component: NAME, host: None };

struct Scheduler {
    world: Arc<ControllerContext>,
    queue: Arc<Queue<Key>>,
    /// Pods that did not fit anywhere at the last attempt.
    waiting: Mutex<BTreeMap<Key, String>>,
    /// Pods that were placed, until the watch reports it: uid to Node.
    assumed: Mutex<HashMap<String, (String, Arc<Pod>)>>,
}

/// Registers for changes and starts the worker.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let scheduler = Arc::new(Scheduler {
        world: world.clone(),
        queue: Queue::new(),
        waiting: Mutex::default(),
        assumed: Mutex::default(),
    });
    let on_pod = scheduler.clone();
    world.pods.on_change(move |before, after| on_pod.pod_changed(before, after));
    let on_node = scheduler.clone();
    world.nodes.on_change(move |before, after| {
        if let Some(node) = after
            && before.is_none_or(|before| matters(before, node))
        {
            on_node.may_help(&node.name_any());
        }
    });
    let worker = scheduler.clone();
    // One worker: each placement depends on the previous one.
    scheduler.queue.spawn(&world.tasks, NAME, 1, move |key| {
        let scheduler = worker.clone();
        async move { scheduler.look(&key).await }
    });
}

/// Whether a change of a Node can make room for a Pod: heartbeats cannot.
fn matters(before: &Node, after: &Node) -> bool {
    before.labels() != after.labels()
        || before.spec != after.spec
        || before.status.as_ref().map(|status| &status.allocatable)
            != after.status.as_ref().map(|status| &status.allocatable)
}

/// Whether the Pod waits to be placed by this scheduler.
fn is_ours(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        spec.node_name.as_deref().unwrap_or_default().is_empty()
            && spec.scheduler_name.as_deref().unwrap_or(NAME) == NAME
            && spec.scheduling_gates.as_deref().unwrap_or_default().is_empty()
    }) && pod.metadata.deletion_timestamp.is_none()
        && !has_ended(pod)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase.is_some_and(|phase| phase == "Succeeded" || phase == "Failed")
}

impl Scheduler {
    fn waiting(&self) -> Vec<Key> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn pod_changed(&self, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        let node = |pod: Option<&Arc<Pod>>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        if let Some(pod) = after.or(before)
            && (after.is_none() || node(after).is_some())
        {
            let uid = pod.uid().unwrap_or_default();
            self.assumed.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
        }
        match after {
            // A change of the status that this scheduler wrote itself does not justify another try.
            Some(pod)
                if is_ours(pod)
                    && before.is_none_or(|before| {
                        before.spec != pod.spec || before.metadata.labels != pod.metadata.labels
                    }) =>
            {
                self.queue.add(Key::of(pod.as_ref()));
            }
            Some(pod) if node(after).is_some() => {
                if node(before).is_none() {
                    // A Pod that was placed may satisfy the affinity of a waiting one.
                    for key in self.waiting() {
                        if self.world.pods.get(&key).is_some_and(|pod| filter::cares_for_others(&pod)) {
                            self.queue.add(key);
                        }
                    }
                } else if has_ended(pod) && !before.is_some_and(|before| has_ended(before)) {
                    node(after).iter().for_each(|name| self.may_help(name));
                }
            }
            Some(_) => {}
            None => {
                if let Some(pod) = before {
                    let key = Key::of(pod.as_ref());
                    self.queue.forget(&key);
                    self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                }
                node(before).iter().for_each(|name| self.may_help(name));
            }
        }
    }

    /// Tries the waiting Pods again that fit a changed Node.
    fn may_help(&self, node: &str) {
        let waiting = self.waiting();
        let Some(node) = self.world.node(node).filter(|_| !waiting.is_empty()) else { return };
        let sites = Sites { all: vec![self.site(node)], ..self.no_sites() };
        for key in waiting {
            let Some(pod) = self.world.pods.get(&key) else { continue };
            let fits = sites.all.iter().all(|site| filter::refuses(&pod, site, &sites).is_empty());
            let none_before = self
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
                .is_some_and(|message| message.starts_with("no nodes"));
            if fits || none_before || filter::cares_for_others(&pod) {
                self.queue.add(key);
            }
        }
    }

    fn no_sites(&self) -> Sites {
        let namespaces = self.world.namespaces.list();
        Sites {
            all: Vec::new(),
            namespaces: namespaces.iter().map(|one| (one.name_any(), one.labels().clone())).collect(),
            resources: self.world.settings.resources,
        }
    }

    fn site(&self, node: Arc<Node>) -> Site {
        let name = node.name_any();
        let mut pods: Vec<_> = self.world.pods_on(&name).into_iter().filter(|pod| !has_ended(pod)).collect();
        for (on, pod) in self.assumed.lock().unwrap_or_else(PoisonError::into_inner).values() {
            if *on == name && !pods.iter().any(|known| known.uid() == pod.uid()) {
                pods.push(pod.clone());
            }
        }
        Site { node, pods }
    }

    fn sites(&self, pod: &Pod) -> Sites {
        let nodes = self.world.nodes.list();
        // For a Pod of a DaemonSet, only the Nodes that it names have to be examined.
        let named = filter::named_nodes(pod).filter(|_| !filter::cares_for_others(pod));
        let all = nodes
            .into_iter()
            .map(|node| match &named {
                Some(named) if !named.contains(&node.name_any()) => Site { node, pods: Vec::new() },
                _ => self.site(node),
            })
            .collect();
        Sites { all, ..self.no_sites() }
    }

    async fn look(&self, key: &Key) -> Outcome {
        let Some(pod) = self.world.pods.get(key).filter(|pod| is_ours(pod)) else { return Ok(Next::Done) };
        let uid = pod.uid().unwrap_or_default();
        if self.assumed.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&uid) {
            return Ok(Next::Done);
        }
        match filter::choose(&pod, &self.sites(&pod)) {
            Ok(node) => self.bind(key, &pod, &node).await,
            Err(refusals) => {
                let never =
                    pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never");
                let preemption = if never { Preemption::Never } else { Preemption::LowerPriority };
                let message = words::message(&refusals, preemption, self.world.control_plane());
                self.waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key.clone(), message.clone());
                self.say_unschedulable(key, &pod, message).await
            }
        }
    }

    async fn bind(&self, key: &Key, pod: &Arc<Pod>, node: &str) -> Outcome {
        let client = &self.world.clients.scheduler;
        let uid = pod.uid().unwrap_or_default();
        self.assumed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid.clone(), (node.to_owned(), pod.clone()));
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let api = writing::api_in::<Pod>(client, &key.namespace);
        let bound: Result<Value, _> =
            api.create_subresource("binding", &key.name, &PostParams::default(), &binding).await;
        match bound {
            Ok(_) => {
                self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
                let message = format!("Successfully assigned {}/{} to {node}", key.namespace, key.name);
                self.world.recorder.tell(client, SOURCE, pod.as_ref(), Weight::Normal, "Scheduled", message);
                Ok(Next::Done)
            }
            Err(error) => {
                self.assumed.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
                if writing::is_not_found(&error) { Ok(Next::Done) } else { Err(error) }
            }
        }
    }

    async fn say_unschedulable(&self, key: &Key, pod: &Pod, message: String) -> Outcome {
        let client = &self.world.clients.scheduler;
        let said = pod
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref()?.iter().find(|one| one.type_ == "PodScheduled"));
        if said.and_then(|said| said.message.as_deref()) != Some(message.as_str()) {
            let since = said
                .filter(|said| said.status == "False")
                .and_then(|said| said.last_transition_time.as_ref())
                .map_or_else(|| Timestamp::now().to_string(), |time| time.0.to_string());
            let generation = pod.metadata.generation.filter(|_| self.world.control_plane().minor >= 34);
            let status = json!({"conditions": [{
                "observedGeneration": generation,
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastTransitionTime": since,
            }]});
            let api = writing::api_in::<Pod>(client, &key.namespace);
            match writing::patch_status(&api, &self.world.pods, &key.name, pod.uid(), status).await {
                Err(error) if writing::is_not_found(&error) => return Ok(Next::Done),
                other => other?,
            }
        }
        self.world.recorder.tell(client, SOURCE, pod, Weight::Warning, "FailedScheduling", message);
        Ok(Next::Done)
    }
}
