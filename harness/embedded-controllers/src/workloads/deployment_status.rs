//! The status of a Deployment, computed from its ReplicaSets.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::rollout::{Limits, Round, resolve};

/// The label that distinguishes the Pods of one template from those of another.
pub(super) const HASH: &str = "pod-template-hash";

/// How many Pods of a ReplicaSet are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Whether the ReplicaSet was made from this Deployment's current template.
pub(super) fn is_current(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let wanted = &deployment.spec.template;
    let Some(mut made) = set.spec.template.clone() else { return false };
    if let Some(labels) = made.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.remove(HASH);
    }
    let plain = |template: &k8s_openapi::api::core::v1::PodTemplateSpec| {
        let mut template = template.clone();
        let meta = template.metadata.get_or_insert_default();
        meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
        meta.creation_timestamp = None;
        template
    };
    plain(wanted) == plain(&made)
}

/// The limits of a Deployment's rollout.
pub(super) fn limits(deployment: &Deployment) -> Limits {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let rolling = deployment.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    Limits {
        replicas,
        surge: resolve(rolling.and_then(|rolling| rolling.max_surge.as_ref()), replicas, Round::Up),
        unavailable: resolve(
            rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
            replicas,
            Round::Down,
        ),
    }
}

/// The status according to the ReplicaSets and the number of their Pods.
pub(super) fn status(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    now: Timestamp,
    pods: impl Fn(&ReplicaSet) -> i32,
) -> DeploymentStatus {
    let limits = limits(deployment);
    let sum =
        |number: &dyn Fn(&ReplicaSet) -> i32| sets.iter().map(|set| number(set)).fold(0, i32::saturating_add);
    let new = sets.iter().find(|set| is_current(deployment, set));
    let replicas = sum(&pods);
    let ready = sum(&|set| set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0));
    let is_available = sum(&|set| available(set));
    let updated = new.map_or(0, |set| pods(set));
    let positive = |number: i32| Some(number).filter(|number| *number > 0);
    let known = deployment.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let condition = |type_: &str, holds: bool, reason: &str, message: String| {
        let status = if holds { "True" } else { "False" };
        let before = known.iter().find(|one| one.type_.as_deref() == Some(type_));
        let same = before.filter(|one| one.status.as_deref() == Some(status));
        let unchanged = same
            .filter(|one| one.reason.as_deref() == Some(reason) && one.message.as_ref() == Some(&message));
        DeploymentCondition {
            type_: Some(type_.to_owned()),
            status: Some(status.to_owned()),
            reason: Some(reason.to_owned()),
            last_transition_time: same.and_then(|one| one.last_transition_time.clone()).or(Some(Time(now))),
            last_update_time: unchanged.and_then(|one| one.last_update_time.clone()).or(Some(Time(now))),
            message: Some(message),
        }
    };
    let enough = is_available >= limits.replicas.saturating_sub(limits.unavailable.min(limits.replicas));
    let mut conditions = vec![if enough {
        condition(
            "Available",
            true,
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.".to_owned(),
        )
    } else {
        let text = "Deployment does not have minimum availability.".to_owned();
        condition("Available", false, "MinimumReplicasUnavailable", text)
    }];
    if let Some(new) = new {
        let complete =
            updated == limits.replicas && replicas == limits.replicas && is_available == limits.replicas;
        let name = new.name_any();
        conditions.push(if complete {
            let text = format!("ReplicaSet {name:?} has successfully progressed.");
            condition("Progressing", true, "NewReplicaSetAvailable", text)
        } else {
            condition(
                "Progressing",
                true,
                "ReplicaSetUpdated",
                format!("ReplicaSet {name:?} is progressing."),
            )
        });
    }
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: positive(replicas),
        updated_replicas: positive(updated),
        ready_replicas: positive(ready),
        available_replicas: positive(is_available),
        unavailable_replicas: positive(limits.replicas.max(replicas).saturating_sub(is_available)),
        conditions: Some(conditions),
        ..DeploymentStatus::default()
    }
}
