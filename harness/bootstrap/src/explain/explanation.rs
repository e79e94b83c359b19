//! Why a cluster does not boot, as data and as text.

use super::graph::Graph;
use super::step::Step;
use serde::Serialize;

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
