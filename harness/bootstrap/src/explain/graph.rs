//! The explanation as a graph, as DOT and as Mermaid, and as the input of the SVG.

use super::chain::{Chain, is_cycle};
use super::words::{Subject, name, pairs, subject};
use crate::model::{Fact, Model, State};

/// A box of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Its text.
    pub title: String,
    /// Its place in the manifests; empty if there is none.
    pub place: String,
    /// Whether it is a workload of the manifests.
    pub workload: bool,
    /// Whether it never becomes true.
    pub never: bool,
    /// Whether it is part of the main cycle or chain.
    pub main: bool,
}

/// An arrow: one box waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The box that waits.
    pub from: usize,
    /// The box that it waits for.
    pub to: usize,
    /// The label.
    pub label: String,
    /// Whether it is part of the main cycle.
    pub cycle: bool,
}

/// The graph: boxes and arrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its title.
    pub title: String,
    /// The boxes; those of the main chain first, in its order.
    pub nodes: Vec<GraphNode>,
    /// The arrows.
    pub edges: Vec<GraphEdge>,
}

/// Builds the graph of a chain and of the other obstacles.
pub(super) fn build(model: &Model, state: &State, main: &Chain, others: &[Chain]) -> Graph {
    let cluster = model.cluster;
    let title = format!("{}, CNI {}, kube-proxy {}", cluster.topology, cluster.cni, cluster.kube_proxy);
    let mut graph = Graph { title, ..Graph::default() };
    let mut known: Vec<Subject> = Vec::new();
    for (chain, is_main) in std::iter::once((main, true)).chain(others.iter().map(|chain| (chain, false))) {
        let mut index = |graph: &mut Graph, fact: usize| {
            let own = subject(model, fact);
            known.iter().position(|subject| *subject == own).unwrap_or_else(|| {
                known.push(own);
                graph.nodes.push(node(model, fact, is_main));
                known.len() - 1
            })
        };
        for fact in &chain.facts {
            index(&mut graph, *fact);
        }
        for (from, to) in pairs(chain) {
            let (a, b) = (index(&mut graph, from), index(&mut graph, to));
            let cycle = is_main && is_cycle(chain);
            if a == b {
                continue;
            }
            match graph.edges.iter_mut().find(|edge| edge.from == a && edge.to == b) {
                Some(edge) => edge.cycle |= cycle,
                None => {
                    let label = label(model, state, from, to);
                    graph.edges.push(GraphEdge { from: a, to: b, label, cycle });
                }
            }
        }
    }
    graph
}

fn node(model: &Model, fact: usize, main: bool) -> GraphNode {
    let title = match model.facts[fact] {
        Fact::Untainted(n, t) => {
            format!("taint {} of Node {}", model.taints[t as usize], model.machines[n as usize].name)
        }
        _ => {
            let name = name(model, fact);
            name.strip_prefix("the ").map_or(name.clone(), str::to_owned)
        }
    };
    let (place, workload) = match (subject(model, fact), model.facts[fact]) {
        (Subject::Workload(w), _) => {
            let workload = &model.set.workloads[w as usize];
            let place = workload.object.map(|_| workload.place.to_string());
            (place.unwrap_or_default(), workload.object.is_some())
        }
        (_, Fact::Never(reason)) => {
            let place = model.reasons[reason as usize].place.as_ref();
            (place.filter(|place| place.line > 0).map(ToString::to_string).unwrap_or_default(), false)
        }
        _ => (String::new(), false),
    };
    GraphNode { title, place, workload, never: matches!(model.facts[fact], Fact::Never(_)), main }
}

fn label(model: &Model, _state: &State, from: usize, to: usize) -> String {
    let text = match (model.facts[from], model.facts[to]) {
        (Fact::Schedulable(..) | Fact::Bound(..), Fact::Untainted(..)) => "Pending: does not tolerate",
        (Fact::Schedulable(..) | Fact::Bound(..), Fact::Initialised(_)) => "Pending: requires a label set by",
        (Fact::Schedulable(..) | Fact::Bound(..), _) => "Pending",
        (Fact::Made(_), _) => "no Pod is created",
        (Fact::Runs(..), Fact::Networked(_)) => "not started: without hostNetwork waits for",
        (Fact::Runs(..), Fact::Addressed(_)) => "not started: reads status.hostIP from",
        (Fact::Runs(..), _) => "not started",
        (Fact::Works(..), Fact::ServicesAnswer(_)) => "reaches the API server through",
        (Fact::Works(..), Fact::DnsAnswers(_)) => "looks up names through",
        (Fact::Works(..), Fact::CloudAnswers(..)) => "reaches its cloud through",
        (Fact::Works(..) | Fact::Serves(_), _) => "does not work",
        (Fact::Untainted(..), Fact::Never(_)) => "stays",
        (Fact::Untainted(..), _) => "removed after",
        (Fact::Addressed(_), Fact::Serves(_) | Fact::Works(..)) => "set by",
        (Fact::Initialised(_), Fact::Serves(_) | Fact::Works(..)) => "done by",
        (Fact::Networked(_), Fact::Works(..)) => "set up by",
        (Fact::WebhookAnswers(_) | Fact::CloudAnswers(..), _) => "answered by",
        _ => "waits for",
    };
    text.to_owned()
}

impl Graph {
    /// The graph for Graphviz.
    pub fn to_dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut dot = String::from("digraph boot {\n  rankdir=TB;\n");
        dot.push_str(&format!("  label=\"{}\";\n  labelloc=t;\n", quoted(&self.title)));
        dot.push_str("  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n");
        for (index, node) in self.nodes.iter().enumerate() {
            let place =
                if node.place.is_empty() { String::new() } else { format!("\\n{}", quoted(&node.place)) };
            let color = if self.in_cycle(index) { ", color=\"#c62828\", penwidth=2" } else { "" };
            dot.push_str(&format!("  n{index} [label=\"{}{place}\"{color}];\n", quoted(&node.title)));
        }
        for edge in &self.edges {
            let color = if edge.cycle { ", color=\"#c62828\", penwidth=2" } else { "" };
            let label = quoted(&edge.label);
            dot.push_str(&format!("  n{} -> n{} [label=\"{label}\"{color}];\n", edge.from, edge.to));
        }
        dot.push_str("}\n");
        dot
    }

    /// The graph for Mermaid, e.g. in an issue or a README.
    pub fn to_mermaid(&self) -> String {
        let safe = |text: &str| text.replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;");
        let mut text = String::from("flowchart TD\n");
        for (index, node) in self.nodes.iter().enumerate() {
            let place =
                if node.place.is_empty() { String::new() } else { format!("<br/>{}", safe(&node.place)) };
            text.push_str(&format!("  n{index}[\"{}{place}\"]\n", safe(&node.title)));
        }
        for edge in &self.edges {
            text.push_str(&format!("  n{} -->|\"{}\"| n{}\n", edge.from, safe(&edge.label), edge.to));
        }
        let cycle: Vec<String> =
            (0..self.nodes.len()).filter(|n| self.in_cycle(*n)).map(|n| format!("n{n}")).collect();
        if !cycle.is_empty() {
            text.push_str("  classDef cycle stroke:#c62828,stroke-width:3px\n");
            text.push_str(&format!("  class {} cycle\n", cycle.join(",")));
            let edges = self.edges.iter().enumerate().filter(|(_, edge)| edge.cycle);
            let edges: Vec<String> = edges.map(|(index, _)| index.to_string()).collect();
            text.push_str(&format!("  linkStyle {} stroke:#c62828,stroke-width:2px\n", edges.join(",")));
        }
        text
    }

    /// Whether a box is part of the main cycle.
    pub(super) fn in_cycle(&self, node: usize) -> bool {
        self.edges.iter().any(|edge| edge.cycle && edge.from == node)
    }
}
