//! What the first line of a page's material says: how the runs ended, and why.

use super::again::again;
use super::causes::{Cause, causes};
use super::material::{Demands, Evidence, Side};
use crate::compare::Difference;
use crate::failure_text::FailureText;
use crate::profile_result::{ProfileResult, profile_results};
use crate::wording::{outcome_text, printable, verdict_word};
use harness_core::ledger::{Ledger, Outcome, Setting};
use serde::Serialize;
use std::collections::BTreeMap;

/// The first line of the material of a page. The events of the runs follow, one after the other.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) runs: Vec<RunHead<'a>>,
    pub(super) demands: &'a Demands,
    /// The checks that ended otherwise in the second run than in the first, where there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) differences: Option<&'a [Difference]>,
}

/// What the page says about a run as a whole.
#[derive(Serialize)]
pub(super) struct RunHead<'a> {
    pub(super) name: &'a str,
    pub(super) report: &'a Ledger,
    pub(super) verdict: &'a str,
    pub(super) because: Vec<Cause>,
    /// What the texts of failures say, by check.
    pub(super) failures: BTreeMap<&'a str, FailureText>,
    /// The command that repeats checks of the run; they follow it.
    pub(super) again: String,
    pub(super) relaxed: Vec<&'a Setting>,
    pub(super) profiles: Vec<ProfileResult>,
    pub(super) evidence: &'a Evidence,
    /// How many lines of its events follow.
    pub(super) lines: usize,
    /// How many do not.
    pub(super) left_out: usize,
    /// The checks that are still to end, of a run that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unended: Option<&'a [String]>,
}

impl<'a> RunHead<'a> {
    /// Of a run, with none of its events.
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

/// What the texts of failed and blocked checks say, taken apart.
fn failures(ledger: &Ledger) -> BTreeMap<&str, FailureText> {
    let text = |outcome: &Outcome| match outcome {
        Outcome::Pass | Outcome::Skip { .. } => None,
        other => FailureText::of(&printable(outcome_text(other)?)),
    };
    ledger.all().filter_map(|entry| Some((entry.id.as_str(), text(&entry.outcome)?))).collect()
}
