//! The first line of a page's data: the results of the runs, with reasons.

use super::again::again;
use super::causes::{Cause, causes};
use super::material::{Demands, Evidence, Side};
use crate::compare::{Change, Difference};
use crate::failure_text::FailureText;
use crate::profile_result::{ProfileResult, profile_results};
use crate::wording::{outcome_text, printable, verdict_word};
use harness_core::ledger::{Ledger, Outcome, Setting};
use serde::Serialize;
use std::collections::BTreeMap;

/// The first line of a page's data. The events of the runs follow, one run after the other.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) runs: Vec<RunHead<'a>>,
    pub(super) demands: &'a Demands,
    /// The checks whose outcome differs between the two runs, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) differences: Option<Vec<MarkedDifference<'a>>>,
}

/// A check whose outcome differs, and what that means for the CCM.
#[derive(Serialize)]
pub(super) struct MarkedDifference<'a> {
    #[serde(flatten)]
    difference: &'a Difference,
    change: Change,
}

impl MarkedDifference<'_> {
    /// All differences, each with its meaning.
    pub(super) fn all(differences: &[Difference]) -> Vec<MarkedDifference<'_>> {
        let marked = |difference| MarkedDifference { difference, change: Difference::change(difference) };
        differences.iter().map(marked).collect()
    }
}

/// The part of the page about a run as a whole.
#[derive(Serialize)]
pub(super) struct RunHead<'a> {
    pub(super) name: &'a str,
    pub(super) report: &'a Ledger,
    pub(super) verdict: &'a str,
    pub(super) because: Vec<Cause>,
    /// The parts of each failure's text, by check.
    pub(super) failures: BTreeMap<&'a str, FailureText>,
    /// The command that repeats checks of the run; their ids are appended.
    pub(super) again: String,
    pub(super) relaxed: Vec<&'a Setting>,
    pub(super) profiles: Vec<ProfileResult>,
    pub(super) evidence: &'a Evidence,
    /// The number of its events that follow.
    pub(super) lines: usize,
    /// The number of its events that were left out.
    pub(super) left_out: usize,
    /// The checks that have not ended, if the run is still in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unended: Option<&'a [String]>,
}

impl<'a> RunHead<'a> {
    /// The head of a run, without events.
    pub(super) fn of(side: &Side<'a>) -> RunHead<'a> {
        RunHead {
            name: side.name,
            report: side.ledger,
            verdict: verdict_word(side.ledger.conformance()),
            because: causes(side.ledger),
            failures: failures(side.ledger),
            again: again(&side.ledger.subject),
            relaxed: side.ledger.subject.relaxed().collect(),
            profiles: profile_results(side.ledger),
            evidence: &side.material.evidence,
            lines: 0,
            left_out: 0,
            unended: None,
        }
    }
}

/// The texts of failed and blocked checks, split into their parts.
fn failures(ledger: &Ledger) -> BTreeMap<&str, FailureText> {
    let text = |outcome: &Outcome| match outcome {
        Outcome::Pass | Outcome::Skip { .. } => None,
        other => FailureText::of(&printable(outcome_text(other)?)),
    };
    ledger.all().filter_map(|entry| Some((entry.id.as_str(), text(&entry.outcome)?))).collect()
}
