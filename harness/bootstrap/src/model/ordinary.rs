//! What the Pods of users depend on after the boot.

use super::asked::Asked;
use bootstrap_manifests::known::{Assumed, Webhook, apply_policies, apply_requests};
use bootstrap_manifests::manifest::{Objects, Place};
use bootstrap_manifests::workload::{Condition, Stage, Workload};

/// What ordinary Pods depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrdinaryPods {
    /// The webhooks that are sent their creation, their binding or the requests for their tokens.
    pub(crate) webhooks: Vec<usize>,
    /// Why they do not run, if the manifests show that they do not.
    pub(crate) hindrances: Vec<(String, Place)>,
    /// What the manifests do not show about the room for them.
    pub(crate) conditions: Vec<Condition>,
}

impl OrdinaryPods {
    /// Judges an ordinary Pod. Whatever depends on fields of which nothing is known, such as its labels, does not count.
    pub(super) fn new(
        objects: &Objects,
        assumed: &Assumed,
        hooks: &[Webhook],
        mut pod: Workload,
    ) -> OrdinaryPods {
        pod.conditions.clear();
        apply_requests(objects, std::slice::from_mut(&mut pod));
        let mut conditions = std::mem::take(&mut pod.conditions);
        for condition in &mut conditions {
            condition.words = format!("ordinary Pods: {}", condition.words);
        }
        // A policy may have given it a selector.
        for (label, value, place) in &pod.node_selector {
            let words = format!("ordinary Pods: a Node has the label {label}={value}");
            conditions.push(Condition { words, place: place.clone() });
        }
        apply_policies(objects, assumed, std::slice::from_mut(&mut pod));
        let asked = Asked::of(objects, hooks, &mut pod);
        let mut webhooks = [asked.creation, asked.bindings, asked.tokens].concat();
        webhooks.sort_unstable();
        webhooks.dedup();
        let runs = |stage: Stage| matches!(stage, Stage::Creation | Stage::Scheduling | Stage::Start);
        let hindering = pod.hindrances.into_iter().filter(|hindrance| runs(hindrance.stage));
        let hindrances = hindering.map(|hindrance| (hindrance.words, hindrance.place)).collect();
        OrdinaryPods { webhooks, hindrances, conditions }
    }
}
