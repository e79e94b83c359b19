//! Checks a set of manifests in every cell of topologies and CNIs, with a verdict for each.

use crate::cluster::{Cluster, Topology};
use crate::explain::{Explanation, explain};
use crate::known::Assumed;
use crate::manifest::{Objects, Problem, Severity, Source};
use crate::model::{Eviction, Outcome, Set, judge};
use serde::Serialize;

/// One cell of the table.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The cluster.
    #[serde(skip)]
    pub cluster: Cluster,
    /// The verdict.
    pub outcome: Outcome,
    /// How many states were explored.
    pub states: usize,
    /// What the boot depends on that the manifests do not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<BootCondition>,
    /// Whether the CCM may be evicted during the boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// Why it does not boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// A condition of the boot that the manifests do not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BootCondition {
    /// The text that follows `boots if`.
    pub text: String,
    /// Where in the manifests, `file:line`.
    pub place: String,
}

/// Manifests that were read and can be checked.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) objects: Objects,
    /// All objects, for the lint.
    pub(crate) set: Set,
    /// The inputs of the model.
    pub(crate) boot: Set,
    pub(crate) assumed: Assumed,
}

impl Checked {
    /// Reads texts. Earlier problems are included.
    pub(crate) fn read(
        sources: Vec<Source>,
        problems: Vec<Problem>,
        assumed: Assumed,
        ccm: Option<&str>,
    ) -> Checked {
        let mut objects = Objects::read(sources);
        objects.problems.splice(0..0, problems);
        let set = Set::new(&objects, &assumed, ccm);
        Checked { boot: set.reduced(), objects, set, assumed }
    }

    /// Why no verdict is possible, if that is so.
    pub(crate) fn unreadable(&self, topologies: &[Topology]) -> Option<String> {
        if self.objects.problems.iter().any(|problem| problem.severity == Severity::Unreadable) {
            return Some(String::from("some manifests cannot be read, so the boot is not analysed"));
        }
        let (found, _) = crate::workload::cloud_controllers(&self.set.workloads);
        let needed = topologies.iter().any(|topology| *topology != Topology::Hosted);
        if found.is_empty() && needed {
            return Some(format!(
                "no workload of these {} objects looks like a cloud controller manager; name it with --ccm KIND/NAME, \
                 or pass --topology hosted if it runs elsewhere",
                self.objects.all.len()
            ));
        }
        None
    }

    /// Whether a workload reaches the API server without its Service address.
    pub(crate) fn names_api_server(&self, workload: usize) -> bool {
        self.set.names_api_server(workload)
    }

    /// Checks one cluster, with an explanation on request.
    pub(crate) fn cell(&self, cluster: Cluster, explained: bool) -> Cell {
        let judged = judge(&self.boot, &cluster);
        let explanation = if explained { explain(&self.boot, &cluster, &judged) } else { None };
        let conditions = self.boot.conditions().into_iter();
        Cell {
            conditions: conditions
                .map(|own| BootCondition { text: own.words.clone(), place: own.place.to_string() })
                .collect(),
            outcome: judged.outcome,
            states: judged.states,
            eviction: judged.eviction,
            explanation,
            cluster,
        }
    }
}
