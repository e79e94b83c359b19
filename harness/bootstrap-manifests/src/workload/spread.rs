//! Topology spread constraints.

use super::selector::{Labels, Selector};
use crate::manifest::{Node, Object, Place};

/// A constraint that keeps Pods from being scheduled (`whenUnsatisfiable: DoNotSchedule`, the default).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The label of Nodes whose values are the places among which Pods are spread.
    pub topology_key: String,
    /// By how many Pods a place may exceed the one with the fewest.
    pub max_skew: i64,
    /// The Pods that count; `None` counts none.
    pub selector: Option<Selector>,
    /// Whether only Nodes count that the Pod's node selector and affinity allow (`nodeAffinityPolicy: Honor`, the default).
    pub honors_affinity: bool,
    /// Whether the number of places is not limited from below (`minDomains`).
    pub any_number: bool,
    /// Where it is.
    pub place: Place,
}

/// The constraints of a Pod.
pub(super) fn spread(object: &Object, spec: &Node) -> Vec<Spread> {
    let items = spec.get("topologySpreadConstraints").map(Node::items).unwrap_or_default();
    let hard = items.iter().filter(|item| item.text_at("whenUnsatisfiable") != Some("ScheduleAnyway"));
    let read = |item: &Node| {
        Some(Spread {
            topology_key: item.text_at("topologyKey")?.to_owned(),
            max_skew: item.get("maxSkew").and_then(Node::int).unwrap_or(1),
            selector: Selector::read(item.get("labelSelector")),
            honors_affinity: item.text_at("nodeAffinityPolicy") != Some("Ignore"),
            any_number: item.get("minDomains").and_then(Node::int).is_none_or(|least| least <= 1),
            place: object.place(item),
        })
    };
    hard.filter_map(read).collect()
}

impl Spread {
    /// Whether Pods with these labels count.
    pub fn counts(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.chooses(labels))
    }
}
