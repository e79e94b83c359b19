//! The questions that are put to model and cluster.

use super::variant;
use bootstrap::{Case, Cell, Source, parse_cases};
use harness_config::did_you_mean;
use harness_core::files::{built_in, read};
use std::sync::Arc;

/// One cell of the table: a variant on a cluster, with the model's result.
#[derive(Clone, Debug)]
pub struct Question {
    /// The variant.
    pub case: Case,
    /// Its manifests.
    pub manifests: Arc<str>,
    /// The cluster, and the model's result.
    pub cell: Cell,
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
        let asked = |cell| Question { case: case.clone(), manifests: manifests.clone(), cell };
        questions.extend(cells.map(asked));
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
