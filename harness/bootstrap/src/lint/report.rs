//! The findings while they are collected.

use crate::finding::{Edit, Finding, Level};
use bootstrap_manifests::manifest::Place;

/// Findings so far.
#[derive(Default)]
pub(super) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        (id, level): (&'static str, Level),
        place: Place,
        what: String,
        why: &str,
        fix: Option<(String, Option<Edit>)>,
    ) {
        let (fix, edit) = fix.map_or((None, None), |(text, edit)| (Some(text), edit));
        let column = place.column;
        self.findings.push(Finding { id, level, column, place, what, why: why.to_owned(), fix, edit });
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by(|a, b| (&a.place, a.id).cmp(&(&b.place, b.id)));
        self.findings
    }
}
