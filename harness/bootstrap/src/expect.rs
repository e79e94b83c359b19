//! For the harness: the boot that is expected of a profile's manifests on the cluster that it is about to create.

use crate::changes::without_assumption;
use crate::check::{Cell, Checked};
use crate::explain::{Explanation, Observed};
use crate::finding::Finding;
use crate::lint::{Claims, lint};
use crate::model::Outcome;
use bootstrap_manifests::cluster::{CloudEndpoint, Cluster, Cni, KubeProxy, Topology};
use bootstrap_manifests::known::Assumed;
use bootstrap_manifests::manifest::{Severity, Source};
use bootstrap_manifests::workload::Role;
use std::path::PathBuf;

/// The expected result for a set of manifests.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// One verdict for each cluster, in the given order.
    pub cells: Vec<Cell>,
    /// The lint's findings.
    pub findings: Vec<Finding>,
    /// The workloads that are taken to be the CCM, as `KIND/NAME`.
    pub ccms: Vec<String>,
}

/// Reads files and folders for [`expect`].
///
/// # Errors
/// What cannot be read, with file, line and remedy.
pub fn read_paths(paths: &[PathBuf]) -> Result<Vec<Source>, String> {
    let (sources, problems) = Source::read(paths, &mut std::io::empty());
    let problems: Vec<_> =
        problems.into_iter().filter(|problem| problem.severity == Severity::Unreadable).collect();
    match problems.as_slice() {
        [] => Ok(sources),
        problems => {
            let lines: Vec<String> = problems
                .iter()
                .map(|problem| format!("{}: {} ({})", problem.place, problem.what, problem.hint))
                .collect();
            Err(lines.join("\n"))
        }
    }
}

/// How a profile names its CCM.
const NAME_IT: &str = "name it with 'workload' in the profile, or with '--workload NAMESPACE/NAME' of 'init'";

/// Runs lint and model on manifests for clusters. `assume` lists objects that exist although the manifests do not contain
/// them, as `KIND/NAME`; `ccm` names the CCM if its name does not show it. Takes milliseconds.
///
/// # Errors
/// Some manifests cannot be read, or they contain no CCM; with file, line and remedy.
pub fn expect(
    sources: Vec<Source>,
    clusters: &[Cluster],
    assume: &[String],
    ccm: Option<&str>,
) -> Result<Expectation, String> {
    let checked = Checked::read(sources, Vec::new(), Assumed::parse(assume)?, ccm);
    let topologies: Vec<Topology> = clusters.iter().map(|cluster| cluster.topology).collect();
    if let Some(reason) = checked.unreadable(&topologies, NAME_IT) {
        let problems = checked.objects.problems.iter();
        let listed: String = problems.map(|p| format!("{}: {} ({})\n", p.place, p.what, p.hint)).collect();
        return Err(format!("{listed}{reason}"));
    }
    let claims = Claims {
        hosted: !clusters.is_empty() && topologies.iter().all(|topology| *topology == Topology::Hosted),
        without_network: clusters.iter().any(|cluster| cluster.cni == Cni::None || cluster.cni.waits()),
        without_proxy: clusters.iter().any(|cluster| cluster.kube_proxy != KubeProxy::Yes),
        cloud_by_name: clusters.iter().any(|cluster| match cluster.cloud_endpoint {
            CloudEndpoint::Name => true,
            CloudEndpoint::Address => false,
            CloudEndpoint::Auto => checked.set.cloud_by_name == Some(true),
        }),
        routes: clusters.iter().any(|cluster| cluster.routes == bootstrap_manifests::cluster::YesNo::Yes),
    };
    let mut cells: Vec<Cell> = clusters.iter().map(|cluster| checked.cell(cluster.clone(), true)).collect();
    // A run has no option '--assume'.
    for explanation in cells.iter_mut().filter_map(|cell| cell.explanation.as_mut()) {
        for change in &mut explanation.changes {
            change.truncate(without_assumption(change).len());
        }
    }
    let workloads = checked.set.workloads.iter().filter(|workload| workload.role == Role::Ccm);
    let ccms = workloads.map(|workload| workload.title()).collect();
    Ok(Expectation { findings: lint(&checked, claims), cells, ccms })
}

impl Expectation {
    /// Whether all clusters boot in every order.
    pub fn boots(&self) -> bool {
        self.cells.iter().all(|cell| cell.outcome.is_boot())
    }

    /// The expectation, one line for each cluster.
    pub fn summary(&self) -> String {
        let line = |cell: &Cell| {
            let cause = cell.explanation.as_ref().and_then(Explanation::cause);
            let mut why = cause.map(|step| format!(": {}", step.text)).unwrap_or_default();
            if cell.outcome == Outcome::BootsIf {
                let all: Vec<&str> =
                    cell.conditions.iter().map(|condition| condition.text.as_str()).collect();
                why = format!(" {}", all.join(", and if "));
            }
            format!("{} with CNI {}: {}{why}\n", cell.cluster.title(), cell.cluster.cni, cell.outcome)
        };
        self.cells.iter().map(line).collect()
    }

    /// Explains why a cluster did not boot, with what was observed on it. If a boot was expected, the text says so: the
    /// cause is then something that manifests do not show, such as the program itself.
    pub fn explain_with(&self, observed: &Observed) -> String {
        match self.cells.iter().find_map(|cell| cell.explanation.as_ref()) {
            Some(explanation) => explanation.with_observed(observed),
            None => {
                let seen: String = observed.to_text().lines().map(|line| format!("  {line}\n")).collect();
                format!(
                    "according to the model these manifests boot, so the cause is not in them: check the CCM's log, its credentials and its cloud\nobserved:\n{seen}"
                )
            }
        }
    }
}
