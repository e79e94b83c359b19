//! Checks a set of manifests in every cell of topologies and CNIs, with a verdict for each.

use crate::explain::{Explanation, explain};
use crate::model::{Change, Eviction, Outcome, Set, judge};
use bootstrap_manifests::cluster::{Cluster, Topology};
use bootstrap_manifests::known::Assumed;
use bootstrap_manifests::manifest::{Objects, Problem, Severity, Source};
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

/// The verdicts when the missing Secrets and ConfigMaps exist.
#[derive(Debug)]
pub(crate) struct Provided {
    /// The objects.
    pub(crate) objects: Vec<String>,
    /// How many cells boot then.
    pub(crate) boots: usize,
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
    /// `remedy` says how to name the CCM.
    pub(crate) fn unreadable(&self, topologies: &[Topology], remedy: &str) -> Option<String> {
        if self.objects.problems.iter().any(|problem| problem.severity == Severity::Unreadable) {
            return Some(String::from("some manifests cannot be read, so the boot is not analysed"));
        }
        let (found, _) = bootstrap_manifests::workload::cloud_controllers(&self.set.workloads);
        let needed = topologies.iter().any(|topology| *topology != Topology::Hosted);
        if found.is_empty() && needed {
            return Some(format!(
                "none of the workloads looks like a cloud controller manager (objects read: {}); {remedy}",
                self.objects.all.len()
            ));
        }
        None
    }

    /// Whether a workload reaches the API server without its Service address.
    pub(crate) fn names_api_server(&self, workload: usize) -> bool {
        self.set.names_api_server(workload)
    }

    /// What happens when the Secrets and ConfigMaps that the manifests leave to the reader exist; `None` if none is
    /// missing.
    pub(crate) fn provided(&self, clusters: &[Cluster]) -> Option<Provided> {
        let mut changes = Vec::new();
        let mut objects = Vec::new();
        for (reference, w) in
            self.boot.missing.iter().zip(0..).flat_map(|(all, w)| all.iter().map(move |r| (r, w)))
        {
            let title = reference.title();
            if matches!(reference.kind, "Secret" | "ConfigMap") && !objects.contains(&title) {
                objects.push(title);
                let (kind, namespace) = (reference.kind.to_owned(), reference.namespace.clone());
                changes.push(Change::Provide(w, kind, namespace, reference.name.clone()));
            }
        }
        if objects.is_empty() {
            return None;
        }
        let set = self.boot.with(&changes);
        let boots = clusters.iter().filter(|cluster| judge(&set, cluster).outcome.is_boot()).count();
        Some(Provided { objects, boots })
    }

    /// Checks one cluster, with an explanation on request.
    pub(crate) fn cell(&self, cluster: Cluster, explained: bool) -> Cell {
        let judged = judge(&self.boot, &cluster);
        let explanation = if explained { explain(&self.boot, &cluster, &judged) } else { None };
        let conditions = self.boot.conditions(&cluster).into_iter();
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
