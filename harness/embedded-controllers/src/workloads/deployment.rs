//! Deployments: a ReplicaSet for each template, with a rolling update or recreated.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::deployment_status::{HASH, available, is_current, limits, status};
use super::replica_set::pods_of;
use super::rollout::{Part, rolling};
use super::template::{controller_of, controller_reference, hash, is_active};
use embedded_runtime::cache::Key;
use embedded_runtime::context::ControllerContext;
use embedded_runtime::events::{Source, Weight};
use embedded_runtime::queue::{Next, Outcome, Queue};
use embedded_runtime::writing;

const REVISION: &str = "deployment.kubernetes.io/revision";
const SOURCE: Source<'static> = Source { component: "deployment-controller", host: None };

struct Controller {
    world: Arc<ControllerContext>,
}

/// Registers for changes and starts the workers.
pub(crate) fn start(world: &Arc<ControllerContext>) {
    let queue: Arc<Queue<Key>> = Queue::new();
    let own = queue.clone();
    world.deployments.on_key(move |key| own.add(key));
    let own = queue.clone();
    world.replica_sets.on_controller("Deployment", move |key| own.add(key));
    // With `Recreate`, the last Pod of an old ReplicaSet has to be gone before a new one starts.
    let own = queue.clone();
    let known = world.clone();
    world.pods.on_change(move |before, after| {
        if let (Some(pod), None) = (before, after)
            && let Some(owner) = pod.owner_references().iter().find(|owner| owner.controller == Some(true))
        {
            let namespace = pod.namespace().unwrap_or_default();
            let set = known.replica_sets.get(&Key::new(&namespace, &owner.name));
            let above = set
                .as_ref()
                .and_then(|set| set.owner_references().iter().find(|one| one.kind == "Deployment"));
            above.iter().for_each(|owner| own.add(Key::new(&namespace, &owner.name)));
        }
    });
    let controller = Arc::new(Controller { world: world.clone() });
    queue.spawn(&world.tasks, "deployment", 4, move |key| {
        let controller = controller.clone();
        async move { controller.look(&key).await }
    });
}

fn revision(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

impl Controller {
    fn sets_of(&self, deployment: &Deployment) -> Vec<Arc<ReplicaSet>> {
        let uid = deployment.uid();
        let mut sets = self.world.replica_sets.list_in(&deployment.namespace().unwrap_or_default());
        sets.retain(|set| controller_of(set.as_ref()) == uid.as_deref());
        sets.sort_by_key(|set| revision(set));
        sets
    }

    async fn look(&self, key: &Key) -> Outcome {
        let Some(deployment) = self.world.deployments.get(key) else { return Ok(Next::Done) };
        if deployment.metadata.deletion_timestamp.is_none() {
            let sets = self.sets_of(&deployment);
            let paused = deployment.spec.paused.unwrap_or(false);
            let new = sets.iter().find(|set| is_current(&deployment, set)).cloned();
            match (new, paused) {
                (Some(new), _) => self.roll(&deployment, &new, &sets, paused).await?,
                (None, true) => {}
                (None, false) => {
                    if self.may_begin(&deployment, &sets).await? {
                        self.begin(&deployment, &sets).await?;
                    }
                }
            }
        }
        self.write_status(key).await
    }

    /// Whether the new ReplicaSet may start: with `Recreate`, all old Pods have to be gone first.
    async fn may_begin(
        &self,
        deployment: &Deployment,
        sets: &[Arc<ReplicaSet>],
    ) -> Result<bool, kube::Error> {
        if !recreates(deployment) {
            return Ok(true);
        }
        for set in sets {
            self.scale(deployment, set, 0).await?;
        }
        Ok(sets.iter().all(|set| pods_of(&self.world, set).is_empty()))
    }

    async fn begin(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Result<(), kube::Error> {
        let spec = &deployment.spec;
        let name = deployment.name_any();
        let namespace = deployment.namespace().unwrap_or_default();
        let next = sets.iter().map(|set| revision(set)).max().unwrap_or(0).saturating_add(1);
        let api = writing::api_in::<ReplicaSet>(&self.world.client(), &namespace);
        for collisions in 0..8 {
            let hash = hash(&spec.template, collisions);
            let mut template = spec.template.clone();
            let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
            labels.insert(HASH.to_owned(), hash.clone());
            let labels = labels.clone();
            let mut selector = spec.selector.clone();
            selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
            let mut annotations = BTreeMap::from([
                (REVISION.to_owned(), next.to_string()),
                (
                    "deployment.kubernetes.io/desired-replicas".to_owned(),
                    spec.replicas.unwrap_or(1).to_string(),
                ),
            ]);
            for (key, value) in deployment.annotations() {
                if key != "kubectl.kubernetes.io/last-applied-configuration" && key != REVISION {
                    annotations.insert(key.clone(), value.clone());
                }
            }
            let set = ReplicaSet {
                metadata: ObjectMeta {
                    name: Some(format!("{name}-{hash}")),
                    namespace: Some(namespace.clone()),
                    labels: Some(labels),
                    annotations: Some(annotations),
                    owner_references: Some(vec![controller_reference(deployment)]),
                    ..ObjectMeta::default()
                },
                spec: ReplicaSetSpec {
                    replicas: Some(self.first_replicas(deployment, sets)),
                    min_ready_seconds: spec.min_ready_seconds,
                    selector,
                    template: Some(template),
                },
                status: None,
            };
            match writing::create(&api, &self.world.replica_sets, &set).await {
                Ok(created) => {
                    let text = format!(
                        "Scaled up replica set {} from 0 to {}",
                        created.name_any(),
                        wanted(&created)
                    );
                    self.tell(deployment, text);
                    return self.note_revision(deployment, next).await;
                }
                // Another template had the same hash: try the next.
                Err(error) if writing::is_already_exists(&error) => {
                    let known = api.get(&format!("{name}-{hash}")).await?;
                    let ours = controller_of(&known) == deployment.metadata.uid.as_deref();
                    self.world.replica_sets.observe(known);
                    if ours {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn first_replicas(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> i32 {
        let limits = limits(deployment);
        if recreates(deployment) || sets.is_empty() {
            return limits.replicas;
        }
        let old: Vec<_> =
            sets.iter().map(|set| Part { wanted: wanted(set), available: available(set) }).collect();
        rolling(limits, Part { wanted: 0, available: 0 }, &old).0
    }

    async fn roll(
        &self,
        deployment: &Deployment,
        new: &Arc<ReplicaSet>,
        sets: &[Arc<ReplicaSet>],
        paused: bool,
    ) -> Result<(), kube::Error> {
        let old: Vec<_> = sets.iter().filter(|set| set.uid() != new.uid()).collect();
        let newest_old = old.iter().map(|set| revision(set)).max().unwrap_or(0);
        if revision(new) <= newest_old {
            // An earlier template came back: its ReplicaSet gets the newest number.
            let next = newest_old.saturating_add(1);
            let api =
                writing::api_in::<ReplicaSet>(&self.world.client(), &new.namespace().unwrap_or_default());
            let change = json!({"metadata": {"annotations": {REVISION: next.to_string()}}});
            writing::merge_if_unchanged(&api, &self.world.replica_sets, new.as_ref(), change).await?;
            return self.note_revision(deployment, next).await;
        }
        self.note_revision(deployment, revision(new)).await?;
        let ready_for = deployment.spec.min_ready_seconds.unwrap_or(0);
        if new.spec.min_ready_seconds.unwrap_or(0) != ready_for {
            // No other field of the Deployment reaches a ReplicaSet that exists (getNewReplicaSet).
            let api =
                writing::api_in::<ReplicaSet>(&self.world.client(), &new.namespace().unwrap_or_default());
            let change = json!({"spec": {"minReadySeconds": ready_for}});
            return writing::merge_if_unchanged(&api, &self.world.replica_sets, new.as_ref(), change).await;
        }
        let limits = limits(deployment);
        let busy = old.iter().any(|set| wanted(set) > 0);
        if paused && busy {
            return Ok(());
        }
        if recreates(deployment) || !busy {
            for set in &old {
                self.scale(deployment, set, 0).await?;
            }
            let left = old.iter().any(|set| !pods_of(&self.world, set).is_empty());
            if !(recreates(deployment) && left) {
                self.scale(deployment, new, limits.replicas).await?;
            }
        } else {
            let part = |set: &ReplicaSet| Part { wanted: wanted(set), available: available(set) };
            let parts: Vec<_> = old.iter().map(|set| part(set)).collect();
            let (next_new, next_old) = rolling(limits, part(new), &parts);
            self.scale(deployment, new, next_new).await?;
            for (set, next) in old.iter().zip(next_old) {
                self.scale(deployment, set, next).await?;
            }
        }
        self.clean_up(deployment, &old).await
    }

    /// Deletes old ReplicaSets beyond the history limit.
    async fn clean_up(&self, deployment: &Deployment, old: &[&Arc<ReplicaSet>]) -> Result<(), kube::Error> {
        let kept = deployment.spec.revision_history_limit.unwrap_or(10);
        let kept = usize::try_from(kept).unwrap_or(0);
        let empty: Vec<_> = old
            .iter()
            .filter(|set| wanted(set) == 0 && pods_of(&self.world, set).is_empty())
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .collect();
        let api =
            writing::api_in::<ReplicaSet>(&self.world.client(), &deployment.namespace().unwrap_or_default());
        for set in empty.iter().take(empty.len().saturating_sub(kept)) {
            writing::delete(&api, &self.world.replica_sets, set.as_ref(), DeleteParams::background()).await?;
        }
        Ok(())
    }

    async fn scale(
        &self,
        deployment: &Deployment,
        set: &Arc<ReplicaSet>,
        to: i32,
    ) -> Result<(), kube::Error> {
        let from = wanted(set);
        if from == to {
            return Ok(());
        }
        let api = writing::api_in::<ReplicaSet>(&self.world.client(), &set.namespace().unwrap_or_default());
        writing::merge_if_unchanged(
            &api,
            &self.world.replica_sets,
            set.as_ref(),
            json!({"spec": {"replicas": to}}),
        )
        .await?;
        let way = if to > from { "up" } else { "down" };
        self.tell(deployment, format!("Scaled {way} replica set {} from {from} to {to}", set.name_any()));
        Ok(())
    }

    async fn note_revision(&self, deployment: &Deployment, revision: i64) -> Result<(), kube::Error> {
        let Some(known) = self.world.deployments.get(&Key::of(deployment)) else { return Ok(()) };
        if known.annotations().get(REVISION).map(String::as_str) == Some(revision.to_string().as_str()) {
            return Ok(());
        }
        let api = writing::api_in::<Deployment>(&self.world.client(), &known.namespace().unwrap_or_default());
        let change = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
        writing::merge_if_unchanged(&api, &self.world.deployments, known.as_ref(), change).await
    }

    async fn write_status(&self, key: &Key) -> Outcome {
        let Some(deployment) = self.world.deployments.get(key) else { return Ok(Next::Done) };
        let sets = self.sets_of(&deployment);
        let status = status(&deployment, &sets, Timestamp::now(), |set| {
            i32::try_from(pods_of(&self.world, set).iter().filter(|pod| is_active(pod)).count())
                .unwrap_or(i32::MAX)
        });
        if deployment.status.as_ref() == Some(&status) {
            return Ok(Next::Done);
        }
        let mut changed = deployment.as_ref().clone();
        changed.status = Some(status);
        writing::replace_status(&self.world.client(), &self.world.deployments, &changed).await?;
        Ok(Next::Done)
    }

    fn tell(&self, deployment: &Deployment, text: String) {
        let client = self.world.client();
        self.world.recorder.tell(&client, SOURCE, deployment, Weight::Normal, "ScalingReplicaSet", text);
    }
}

fn recreates(deployment: &Deployment) -> bool {
    deployment.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}
