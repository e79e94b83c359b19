//! Where Pods may run: node selectors, affinity and anti-affinity.

use super::selector::{Expression, Labels, Operator, Selector, Term};
use super::taint::{Effect, Toleration};
use crate::manifest::{Node, Object, Place};

/// A required relation to other Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTerm {
    /// Which Pods; `None` matches none.
    pub selector: Option<Selector>,
    /// In which namespaces. Without any, and without a selector of namespaces, in the Pod's own.
    pub namespaces: Vec<String>,
    /// In the namespaces with these labels as well; the name is the only label of theirs that is known.
    pub chosen: Option<Selector>,
    /// The Node label that defines 'the same place'.
    pub topology_key: String,
    /// Where the term is.
    pub place: Place,
}

impl PodTerm {
    /// Whether Pods with these labels in this namespace are meant.
    pub fn means(&self, own: &str, namespace: &str, labels: &Labels) -> bool {
        let named = Labels::from([("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())]);
        let place = match &self.chosen {
            Some(chosen) => self.namespaces.iter().any(|n| n == namespace) || chosen.chooses(&named),
            None if self.namespaces.is_empty() => own == namespace,
            None => self.namespaces.iter().any(|n| n == namespace),
        };
        place && self.selector.as_ref().is_some_and(|selector| selector.chooses(labels))
    }
}

/// The labels of `nodeSelector`.
pub(super) fn node_selector(object: &Object, spec: &Node) -> Vec<(String, String, Place)> {
    let map = spec.get("nodeSelector");
    let entries = map.map(Node::entries).unwrap_or_default();
    let place = |line, column| Place { file: object.file.clone(), line, column };
    entries
        .iter()
        .map(|entry| {
            let value = entry.value.scalar().unwrap_or_default();
            (entry.key.clone(), value, place(entry.line, entry.column))
        })
        .collect()
}

/// The tolerations, without those that the API server refuses.
pub(super) fn tolerations(object: &Object, spec: &Node) -> Vec<Toleration> {
    let read = |item: &Node| {
        let text = |key: &str| item.get(key).and_then(Node::scalar).unwrap_or_default();
        let exists = match text("operator").as_str() {
            "" | "Equal" => false,
            "Exists" => true,
            _ => return None,
        };
        let effect = match text("effect").as_str() {
            "" => None,
            named => Some(Effect::parse(named)?),
        };
        let seconds = item.get("tolerationSeconds").and_then(Node::int);
        let place = Some(object.place(item));
        Some(Toleration { key: text("key"), exists, value: text("value"), effect, seconds, place })
    };
    spec.get("tolerations").map(Node::items).unwrap_or_default().iter().filter_map(read).collect()
}

/// The alternatives of required node affinity; `None` when nothing is required.
pub(super) fn node_affinity(object: &Object, spec: &Node) -> Option<Vec<Term>> {
    let required =
        spec.at(&["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"])?;
    let terms = required.get("nodeSelectorTerms")?.items();
    // A term without requirements matches no Node (nodeaffinity, `isEmptyNodeSelectorTerm`).
    let all = terms.iter().map(|term| node_term(object, term));
    Some(all.filter(|term| !term.expressions.is_empty()).collect())
}

/// The preferred terms of node affinity, with their weights.
pub(super) fn preferred_nodes(object: &Object, spec: &Node) -> Vec<(i64, Term)> {
    let path = ["affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"];
    let items = spec.at(&path).map(Node::items).unwrap_or_default();
    let of_item = |item: &Node| {
        let term = node_term(object, item.get("preference")?);
        let weight = item.get("weight").and_then(Node::int)?;
        (!term.expressions.is_empty()).then_some((weight, term))
    };
    items.iter().filter_map(of_item).collect()
}

fn node_term(object: &Object, term: &Node) -> Term {
    let read = |list: &str, field: bool| -> Vec<Expression> {
        let items = term.get(list).map(Node::items).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| Expression::read(item, Some(object.place(item))))
            .map(|expression| Expression { field, ..expression })
            .collect()
    };
    let mut expressions = read("matchExpressions", false);
    expressions.extend(read("matchFields", true));
    Term { expressions }
}

/// Required terms under `podAffinity` or `podAntiAffinity`.
pub(super) fn required_terms(object: &Object, spec: &Node, kind: &str, own: &Labels) -> Vec<PodTerm> {
    let path = ["affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"];
    let items = spec.at(&path).map(Node::items).unwrap_or_default();
    items.iter().map(|item| pod_term(object, item, own)).collect()
}

/// Preferred terms under `podAntiAffinity`.
pub(super) fn preferred_terms(object: &Object, spec: &Node, own: &Labels) -> Vec<PodTerm> {
    let path = ["affinity", "podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"];
    let items = spec.at(&path).map(Node::items).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.get("podAffinityTerm"))
        .map(|term| pod_term(object, term, own))
        .collect()
}

/// One term. The API server adds what `matchLabelKeys` and `mismatchLabelKeys` say to the selector: the values of the Pod's
/// own labels, which its controller has completed.
fn pod_term(object: &Object, item: &Node, own: &Labels) -> PodTerm {
    let mut selector = Selector::read(item.get("labelSelector"));
    for (field, operator) in [("matchLabelKeys", Operator::In), ("mismatchLabelKeys", Operator::NotIn)] {
        for key in item.get(field).map(Node::texts).unwrap_or_default() {
            if let (Some(selector), Some(value)) = (&mut selector, own.get(&key)) {
                let place = Some(object.place(item));
                selector.expressions.push(Expression {
                    key,
                    operator,
                    values: vec![value.clone()],
                    place,
                    field: false,
                });
            }
        }
    }
    PodTerm {
        selector,
        namespaces: item.get("namespaces").map(Node::texts).unwrap_or_default(),
        chosen: Selector::read(item.get("namespaceSelector")),
        topology_key: item.text_at("topologyKey").unwrap_or_default().to_owned(),
        place: object.place(item),
    }
}
