//! The questions that are put to model and cluster.

use super::variant;
use bootstrap::{Case, Cell, Cni, Source, Topology, parse_cases, read_paths};
use harness_config::did_you_mean;
use harness_core::files::{built_in, read};
use std::path::PathBuf;
use std::sync::Arc;

/// The clusters of variants that are not in the table.
pub(super) const TOPOLOGIES: [Topology; 4] = [
    Topology::SingleNode,
    Topology::SingleControlPlane,
    Topology::ControlPlaneAndWorker,
    Topology::ThreeControlPlanes,
];
/// Their pod networks.
pub(super) const CNIS: [Cni; 4] = [Cni::None, Cni::Independent, Cni::WaitsForAddresses, Cni::StartupTaint];
/// The variant whose line in the table applies to manifests that are not in it.
const USUAL: &str = "good-deployment";

/// One cell of the table: a variant on a cluster, with the model's result.
#[derive(Clone, Debug)]
pub struct Question {
    /// The variant.
    pub case: Case,
    /// Its manifests.
    pub manifests: Arc<str>,
    /// The cluster, and the model's result.
    pub cell: Cell,
    /// The workloads that are the CCM, as `KIND/NAME`; empty if they have the image `${IMAGE}`.
    pub ccms: Vec<String>,
}

/// The table of the built-in variants.
pub(super) fn table() -> Result<Vec<Case>, String> {
    let table = built_in("bootstrap/cases.yaml");
    let text = read(&table).map_err(|error| error.to_string())?;
    parse_cases(&text, &table.display().to_string())
}

/// All cells of the built-in variants, or only of those with these names.
///
/// # Errors
/// A table or a variant that cannot be read, or a name that is not in the table.
pub fn questions(names: &[String]) -> Result<Vec<Question>, String> {
    let cases = table()?;
    if let Some(unknown) = names.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        let known: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let near = did_you_mean(unknown, &known);
        let hint = if near.is_empty() { format!("; there are {}", known.join(", ")) } else { near };
        return Err(format!("--case: unknown variant '{unknown}'{hint}"));
    }
    let mut questions = Vec::new();
    for case in cases.into_iter().filter(|case| names.is_empty() || names.contains(&case.name)) {
        let cells = case.expect.iter().flat_map(|line| line.cells());
        let clusters: Vec<_> = cells.map(|(topology, cni)| case.cluster(topology, cni)).collect();
        let manifests = variant::text_of(&case.name)?;
        let sources = vec![Source::new(&format!("{}.yaml", case.name), &manifests)];
        let cells = case.expectation(sources, &clusters)?.cells.into_iter();
        let asked =
            |cell| Question { case: case.clone(), manifests: manifests.clone(), cell, ccms: Vec::new() };
        questions.extend(cells.map(asked));
    }
    Ok(questions)
}

/// Manifests that are not in the table: each path, a file or a folder, is a variant on every cluster.
///
/// # Errors
/// Manifests that cannot be read.
pub fn given(paths: &[PathBuf]) -> Result<Vec<Question>, String> {
    let usual = table()?.into_iter().find(|case| case.name == USUAL);
    let usual = usual.ok_or_else(|| format!("'{USUAL}' is not in the table"))?;
    let mut questions = Vec::new();
    for path in paths {
        let sources = read_paths(std::slice::from_ref(path))?;
        let texts: Vec<&str> = sources.iter().map(|source| source.text.as_ref()).collect();
        let manifests: Arc<str> = Arc::from(texts.join("\n---\n"));
        let name = path.display().to_string();
        let case = Case { what: name.clone(), name, expect: Vec::new(), finding: None, ..usual.clone() };
        let clusters: Vec<_> = TOPOLOGIES
            .iter()
            .flat_map(|topology| CNIS.iter().map(|cni| case.cluster(*topology, *cni)))
            .collect();
        let expectation = case.expectation(sources, &clusters)?;
        let ccms = expectation.ccms;
        questions.extend(expectation.cells.into_iter().map(|cell| Question {
            case: case.clone(),
            manifests: manifests.clone(),
            cell,
            ccms: ccms.clone(),
        }));
    }
    Ok(questions)
}

/// For each variant, the first cell for each verdict of the model, of those that can be shown according to `shown`.
pub fn sample(questions: Vec<Question>, shown: impl Fn(&Question) -> bool) -> Vec<Question> {
    let mut kept: Vec<Question> = Vec::new();
    for question in questions.into_iter().filter(shown) {
        let same = |known: &Question| {
            known.case.name == question.case.name && known.cell.outcome == question.cell.outcome
        };
        if !kept.iter().any(same) {
            kept.push(question);
        }
    }
    kept
}
