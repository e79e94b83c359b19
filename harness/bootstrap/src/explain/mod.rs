//! Why a cluster does not boot: the shortest cycle, the other obstacles, and what to change.

mod chain;
mod explanation;
mod graph;
mod observed;
mod step;
mod svg;
mod words;

pub use explanation::Explanation;
pub use graph::{Graph, GraphEdge, GraphNode};
pub use observed::{Observed, ObservedNode, ObservedPod};
pub use step::Step;

use crate::changes::{smallest, words as change_words};
use crate::model::{Change, Judged, Model, Set};
use bootstrap_manifests::cluster::Cluster;
use chain::shortest;

/// Explains a stuck cluster; `None` if it is not stuck.
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
            order.push(String::from("the webhooks take effect before any Pod is created"));
        }
        let title = |w: u32| set.workloads[w as usize].title();
        let node = |n: u32| model.machines[n as usize].name.clone();
        order.extend(state.bound.iter().map(|(w, n)| format!("{} is bound to Node {}", title(*w), node(*n))));
        let gone = |(w, n): &(u32, u32)| format!("{} is evicted from Node {}", title(*w), node(*n));
        order.extend(state.preempted.iter().map(gone));
    }
    let graph = graph::build(&model, state, &main, &others);
    let changes = changes.iter().map(|change: &Change| change_words(set, change)).collect();
    Some(Explanation { back_to: words::back_to(&model, &main), steps, also, order, changes, graph })
}
