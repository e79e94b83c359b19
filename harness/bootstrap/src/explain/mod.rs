//! Why a cluster does not boot: the shortest cycle, what else is in the way, what to change.

mod chain;
mod graph;
mod observed;
mod svg;
mod words;

pub use graph::{Graph, GraphEdge, GraphNode};
pub use observed::{Observed, ObservedNode, ObservedPod};

use crate::changes::{smallest, words as change_words};
use crate::cluster::Cluster;
use crate::model::{Change, Judged, Model, Set};
use chain::{Chain, shortest};
use serde::Serialize;

/// One step of the explanation: something that waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// A sentence.
    pub text: String,
    /// Where in the manifests, `file:line`, when a manifest says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Why a cluster does not boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What waits for what.
    pub steps: Vec<Step>,
    /// Which step the last one leads back to, counted from 0; absent when nothing leads back: what the last step waits
    /// for never comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to: Option<usize>,
    /// What else is in the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Step>,
    /// In which order Pods were bound, when other orders boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The smallest set of changes of the manifests that makes this cluster boot; empty when none does.
    pub changes: Vec<String>,
    /// The same as a graph.
    #[serde(skip)]
    pub graph: Graph,
}

/// Explains a stuck cluster; `None` when it is not stuck.
pub(crate) fn explain(set: &Set, cluster: &Cluster, judged: &Judged) -> Option<Explanation> {
    let (state, webhooks_first) = judged.stuck.as_ref()?;
    let model = Model::new(set, cluster, *webhooks_first);
    let changes = smallest(set, &[cluster]).unwrap_or_default();
    let main = shortest(&model, state, &changes);
    let others = chain::others(&model, state, &main, &changes);
    let steps = words::steps(&model, state, &main);
    let mut also: Vec<Step> = Vec::new();
    for step in others.iter().flat_map(|chain| words::obstacle(&model, state, chain)) {
        if !also.contains(&step) && !steps.contains(&step) {
            also.push(step);
        }
    }
    let mut order = Vec::new();
    if judged.booted {
        if *webhooks_first {
            order.push(String::from("the webhooks take effect before any Pod is made"));
        }
        let title = |w: u32| set.workloads[w as usize].title();
        let node = |n: u32| model.machines[n as usize].name.clone();
        order.extend(state.bound.iter().map(|(w, n)| format!("{} is bound to Node {}", title(*w), node(*n))));
        let gone = |(w, n): &(u32, u32)| format!("{} has to leave Node {}", title(*w), node(*n));
        order.extend(state.preempted.iter().map(gone));
    }
    let graph = graph::build(&model, state, &main, &others);
    let changes = changes.iter().map(|change: &Change| change_words(set, change)).collect();
    Some(Explanation { back_to: words::back_to(&model, &main), steps, also, order, changes, graph })
}

impl Explanation {
    /// The explanation as text, lines without indentation.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (number, step) in self.steps.iter().enumerate() {
            text.push_str(&format!("{}. {}\n", number + 1, self.with_place(step)));
        }
        match self.back_to {
            Some(step) => {
                text.push_str(&format!(
                    "   ... and so on from {}: a cycle, nothing in it can come first.\n",
                    step + 1
                ));
            }
            None => text.push_str("   ... and that never comes.\n"),
        }
        for step in &self.also {
            text.push_str(&format!("also: {}\n", self.with_place(step)));
        }
        if !self.order.is_empty() {
            text.push_str(&format!("in this order: {}\n", self.order.join("; ")));
        }
        match self.changes.as_slice() {
            [] => text.push_str("no change of these manifests that this tool knows mends it\n"),
            [one] => text.push_str(&format!("smallest change: {one}\n")),
            several => {
                text.push_str(&format!("smallest change, {} together:\n", several.len()));
                for change in several {
                    text.push_str(&format!("  - {change}\n"));
                }
            }
        }
        text
    }

    fn with_place(&self, step: &Step) -> String {
        match &step.place {
            Some(place) => format!("{} [{place}]", step.text),
            None => step.text.clone(),
        }
    }
}

/// A chain and how it ends.
pub(crate) fn is_cycle(chain: &Chain) -> bool {
    chain.back_to.is_some()
}
