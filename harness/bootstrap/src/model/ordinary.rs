//! What the Pods of users depend on after the boot.

use super::asked::Asked;
use bootstrap_manifests::known::{Assumed, Webhook, apply_policies, apply_requests};
use bootstrap_manifests::manifest::Objects;
use bootstrap_manifests::workload::{Condition, Hindrance, Stage, Workload};

/// What ordinary Pods depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrdinaryPods {
    /// The webhooks that are sent their creation, their binding or the requests for their tokens.
    pub(crate) webhooks: Vec<usize>,
    /// Why they do not run, if the manifests show that they do not.
    pub(crate) hindrances: Vec<Hindrance>,
    /// What the manifests do not show about the Nodes for them.
    pub(crate) conditions: Vec<Condition>,
}

/// Labels that every Node has.
const OF_NODES: [&str; 2] = ["kubernetes.io/os", "kubernetes.io/arch"];

impl OrdinaryPods {
    /// Judges an ordinary Pod next to the workloads of the manifests. Whatever depends on fields of which nothing is known,
    /// such as its image, does not count.
    pub(super) fn new(
        objects: &Objects,
        assumed: &Assumed,
        hooks: &[Webhook],
        mut pod: Workload,
        others: &[Workload],
    ) -> OrdinaryPods {
        pod.conditions.clear();
        apply_requests(objects, std::slice::from_mut(&mut pod));
        let mut conditions = std::mem::take(&mut pod.conditions);
        for condition in &mut conditions {
            condition.words = format!("ordinary Pods: {}", condition.words);
        }
        // A policy may have given it a selector.
        let selected = pod.node_selector.iter().filter(|(label, ..)| !OF_NODES.contains(&label.as_str()));
        conditions.extend(selected.map(|(label, value, place)| Condition {
            words: format!("ordinary Pods: a Node has the label {label}={value}"),
            place: place.clone(),
        }));
        let own_file = pod.place.file.clone();
        let mut all = [others, &[pod]].concat();
        apply_policies(objects, assumed, &mut all);
        let Some(mut pod) = all.pop() else { return OrdinaryPods::default() };
        let asked = Asked::of(objects, hooks, &mut pod);
        let mut webhooks = [asked.creation, asked.bindings, asked.tokens].concat();
        webhooks.sort_unstable();
        webhooks.dedup();
        let runs = |stage: Stage| matches!(stage, Stage::Creation | Stage::Scheduling | Stage::Start);
        let mut hindrances = pod.hindrances;
        hindrances.retain(|hindrance| runs(hindrance.stage));
        // The Pod itself is in no file; what refuses it there is its namespace.
        let namespace = objects.of_kind("Namespace").find(|object| object.name == pod.namespace);
        if let Some(namespace) = namespace {
            for hindrance in hindrances.iter_mut().filter(|hindrance| hindrance.place.file == own_file) {
                hindrance.place = namespace.at();
            }
        }
        OrdinaryPods { webhooks, hindrances, conditions }
    }
}
