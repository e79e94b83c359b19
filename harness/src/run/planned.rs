//! Which checks run: every check of the suites with its level for this CCM and its choice.

use crate::check::{Level, Sharing};
use crate::config::{Candidate, Choice, Framework, Offer, Problems, RunPlan, select, unknown_deviations};
use crate::cx::{Check, Suite};
use crate::events::{PlannedCheck, Skipped};
use crate::ledger::{Entry, Outcome};
use std::cmp::Reverse;

/// One check of a run and whether it is to be judged.
#[derive(Clone)]
pub struct Planned {
    /// Its suite's name.
    pub suite: &'static str,
    /// The check.
    pub check: &'static Check,
    /// The level as it binds this CCM.
    pub level: Level,
    /// Whether it runs, or why not.
    pub choice: Choice,
}

impl Planned {
    /// The test's name.
    pub fn name(&self) -> String {
        format!("{}::{}", self.suite, self.check.id)
    }

    /// The check in the stream of events.
    pub fn event(&self) -> PlannedCheck {
        PlannedCheck {
            id: self.check.id.to_string(),
            suite: self.suite.to_owned(),
            title: self.check.title.to_owned(),
            level: self.level,
            sharing: self.check.sharing,
            skipped: match &self.choice {
                Choice::Selected => None,
                Choice::Skip(reason, detail) => Some(Skipped { reason: *reason, detail: detail.clone() }),
            },
        }
    }

    /// An entry for the ledger that tells no more than what the check is.
    pub fn entry(&self, outcome: Outcome) -> Entry {
        Entry {
            id: self.check.id.to_string(),
            suite: self.suite.to_owned(),
            title: self.check.title.to_owned(),
            level: self.level,
            sharing: self.check.sharing,
            outcome,
            duration_ms: 0,
            budget_used_percent: None,
            evidence: None,
            started: String::new(),
            facts: Default::default(),
        }
    }
}

/// Every check of the suites, each with its level for this CCM and its choice.
///
/// # Errors
/// When the selection names a suite or check that does not exist, or the profile a deviation from one.
pub fn plan_checks<C>(
    suites: &'static [Suite],
    plan: &RunPlan<C>,
    offer: &Offer,
) -> Result<Vec<Planned>, Problems> {
    let all: Vec<(&'static str, &'static Check)> =
        suites.iter().flat_map(|suite| suite.checks().map(|check| (suite.name, check))).collect();
    let candidates: Vec<Candidate> =
        suites.iter().flat_map(|suite| suite.checks().map(|check| Candidate::of(suite, check))).collect();
    unknown_deviations(&plan.profile, &candidates)?;
    let choices = select(&candidates, &plan.selection, offer)?;
    let framework = plan.profile.framework != Framework::Other;
    let planned = all.into_iter().zip(choices).map(|((suite, check), choice)| {
        let softened = check.framework_only && !framework && check.level == Level::Must;
        let level = if softened { Level::Should } else { check.level };
        Planned { suite, check, level, choice }
    });
    Ok(planned.collect())
}

/// In the order in which checks begin: phases follow one another, and in each the long ones come first.
pub fn in_order(mut planned: Vec<Planned>) -> Vec<Planned> {
    planned.sort_by_key(|p| (super::order::phase(p.check.sharing), Reverse(p.check.takes_s)));
    planned
}

/// The checks that are to run, in the order in which they begin.
pub(super) fn selected(planned: &[Planned]) -> Vec<Planned> {
    in_order(planned.iter().filter(|one| one.choice == Choice::Selected).cloned().collect())
}

/// How many of these watch the leader crash.
pub(super) fn joint(planned: &[Planned]) -> usize {
    planned.iter().filter(|one| one.check.sharing == Sharing::Joint).count()
}
