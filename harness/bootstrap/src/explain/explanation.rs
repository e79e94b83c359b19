//! Why a cluster does not boot, as data and as text.

use super::graph::Graph;
use super::step::Step;
use serde::Serialize;

/// Why a cluster does not boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The steps: what waits for what.
    pub steps: Vec<Step>,
    /// The step that the last one leads back to, counted from 0. Absent if there is none: then the last step waits for
    /// something that never happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to: Option<usize>,
    /// Other obstacles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Step>,
    /// The order in which Pods were bound, if other orders boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The smallest set of changes of the manifests that makes this cluster boot; empty when none does.
    pub changes: Vec<String>,
    /// The same as a graph.
    #[serde(skip)]
    pub graph: Graph,
}

impl Explanation {
    /// The step that names the cause: the first one of a cycle that the manifests bring about, otherwise the last one
    /// with a place, which never happens.
    pub fn cause(&self) -> Option<&Step> {
        let written = |step: &&Step| step.place.is_some();
        let found = match self.back_to {
            Some(_) => self.steps.iter().find(written),
            None => self.steps.iter().rev().find(written).or(self.steps.last()),
        };
        found.or(self.steps.first())
    }

    /// Whether things wait for each other; otherwise something that they wait for never happens.
    pub fn is_cycle(&self) -> bool {
        self.back_to.is_some()
    }

    /// The explanation as text, in lines without indentation.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (number, step) in self.steps.iter().enumerate() {
            text.push_str(&format!("{}. {}\n", number + 1, self.with_place(step)));
        }
        match self.back_to {
            Some(step) => {
                text.push_str(&format!(
                    "   ... and so on from {}: a cycle, in which nothing can come first.\n",
                    step + 1
                ));
            }
            None => text.push_str("   ... and that never happens.\n"),
        }
        for step in &self.also {
            text.push_str(&format!("also: {}\n", self.with_place(step)));
        }
        if !self.order.is_empty() {
            text.push_str(&format!("in this order: {}\n", self.order.join("; ")));
        }
        match self.changes.as_slice() {
            [] => text.push_str("this tool knows no change of these manifests that fixes it\n"),
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
