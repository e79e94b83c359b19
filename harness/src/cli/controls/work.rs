//! What is judged, and when a judgement is as it should be.

use super::list::{Mutant, Stranger};
use crate::check::Level;
use crate::cloud::Settings;
use crate::config::{Choice, RunPlan};
use crate::ledger::{Entry, Outcome, SkipReason};
use crate::run::Planned;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// How checks must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// They fail: the CCM is wrong, or there is none.
    Failure,
    /// None of them fails: the CCM is right.
    NoFailure,
}

/// A CCM to be judged.
pub(super) struct Work {
    pub(super) subject: String,
    pub(super) plan: RunPlan,
    pub(super) expected: Expected,
    /// The checks it is judged by.
    pub(super) checks: BTreeSet<String>,
    /// How the cloud is meanwhile.
    pub(super) cloud: Settings,
    /// Checks that run side by side.
    pub(super) jobs: Option<u32>,
}

/// What became of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcomes {
    /// It is wrong, and every check that can show it failed.
    Noticed,
    /// It is wrong, and a check did not fail.
    Missed,
    /// It is wrong in a way that this cluster cannot show.
    NotShown,
    /// It is right, and no check failed.
    Passed,
    /// It is right, and a check failed.
    FalseAlarm,
}

/// A subject that was judged, as `controls.yaml` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Judged {
    /// Mutant or stranger.
    pub(super) subject: String,
    /// What became of it.
    pub(super) result: Outcomes,
    /// How many checks it was judged by.
    pub(super) checks: usize,
    /// What was not as expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) objections: Vec<String>,
    /// For how long it was judged.
    pub(super) seconds: f64,
}

/// Whether a check binds the CCM as a MUST.
fn binds(planned: &&Planned) -> bool {
    planned.choice == Choice::Selected && planned.level == Level::Must
}

/// Whether a check can fail.
fn judges(planned: &&Planned) -> bool {
    planned.choice == Choice::Selected && planned.level != Level::Info
}

impl Work {
    /// No CCM at all, by every MUST of `everything`.
    pub(super) fn of_nothing(plan: RunPlan, everything: &[Planned]) -> Work {
        let checks = everything.iter().filter(binds).map(|p| p.check.id.to_string()).collect();
        let (subject, expected, cloud) = ("no CCM".to_owned(), Expected::Failure, Settings::default());
        Work { subject, plan, expected, checks, cloud, jobs: None }
    }

    /// A mutant, by the checks named for it.
    ///
    /// # Errors
    /// When there is no check of a name.
    pub(super) fn of_mutant(
        control: &Mutant,
        plan: &RunPlan,
        everything: &[Planned],
    ) -> Result<Work, String> {
        let Mutant { mutant, checks } = control;
        if let Some(unknown) = checks.iter().find(|id| !everything.iter().any(|p| p.check.id.is_named(id))) {
            return Err(format!("mutant {mutant}: no check {unknown}"));
        }
        let mut plan = plan.clone();
        plan.profile.extra_arguments.push(format!("--mutant={mutant}"));
        plan.output = plan.output.join(mutant);
        let named = |p: &&Planned| checks.iter().any(|id| p.check.id.is_named(id));
        let named = everything.iter().filter(judges).filter(named).map(|p| p.check.id.to_string());
        let (expected, cloud) = (Expected::Failure, Settings::default());
        Ok(Work { subject: mutant.clone(), plan, expected, checks: named.collect(), cloud, jobs: None })
    }

    /// A stranger with the plan of its profile, by all of `everything` that it meets.
    ///
    /// # Errors
    /// When it meets none.
    pub(super) fn of_stranger(one: &Stranger, plan: RunPlan, everything: &[Planned]) -> Result<Work, String> {
        let met = everything.iter().filter(|p| p.choice == Choice::Selected);
        let met = met.filter(|p| one.meets(p.suite, p.check.id)).map(|p| p.check.id.to_string());
        let checks: BTreeSet<String> = met.collect();
        if checks.is_empty() {
            return Err(format!("stranger {}: no check applies to it", one.stranger));
        }
        let (subject, expected) = (format!("{} ({})", one.stranger, one.what), Expected::NoFailure);
        Ok(Work { subject, plan, expected, checks, cloud: one.cloud.clone(), jobs: one.jobs })
    }
}

impl Expected {
    /// Why an entry is not as expected. Where a failure is expected only a failure will do, but for what this cluster cannot
    /// show; a right CCM fails nothing that binds it, and meets no trouble of the machinery.
    pub(super) fn objection(self, entry: &Entry) -> Option<String> {
        let Entry { id, outcome, level, .. } = entry;
        match (self, outcome) {
            (Expected::Failure, Outcome::Fail { .. }) => None,
            (Expected::Failure, Outcome::Skip { reason: SkipReason::NotObservable, .. }) => None,
            (Expected::Failure, Outcome::Skip { detail, .. }) => {
                Some(format!("{id} was not judged: {detail}"))
            }
            (Expected::Failure, Outcome::Pass) => Some(format!("{id} passes")),
            (Expected::Failure, Outcome::Blocked { by, .. }) => Some(format!("{id} was blocked by {by}")),
            (Expected::NoFailure, Outcome::Blocked { by, message }) => {
                Some(format!("{id}: blocked by {by}\n      {}", message.lines().next().unwrap_or_default()))
            }
            (Expected::Failure, Outcome::Error { message }) => {
                let first = message.lines().next().unwrap_or_default();
                Some(format!("{id}: environment error: {first}"))
            }
            (Expected::NoFailure, Outcome::Pass | Outcome::Skip { .. }) => None,
            (Expected::NoFailure, Outcome::Fail { .. }) if *level == Level::Info => None,
            (Expected::NoFailure, Outcome::Fail { message }) => {
                let lines: Vec<&str> = message.lines().take(5).collect();
                Some(format!("{id}\n      {}", lines.join("\n      ")))
            }
            (Expected::NoFailure, Outcome::Error { message }) => {
                let words: String = message.lines().next().unwrap_or_default().chars().take(400).collect();
                Some(format!("{id}: environment error\n      {words}"))
            }
        }
    }
}

impl Judged {
    /// What became of a subject, by the entries of the checks that it was to be judged by.
    pub(super) fn of(subject: String, expected: Expected, entries: &[&Entry], seconds: f64) -> Judged {
        let objections: Vec<String> = entries.iter().filter_map(|entry| expected.objection(entry)).collect();
        let shown = entries.iter().any(|entry| !matches!(entry.outcome, Outcome::Skip { .. }));
        let result = match (expected, objections.is_empty()) {
            (Expected::Failure, true) if !shown => Outcomes::NotShown,
            (Expected::Failure, true) => Outcomes::Noticed,
            (Expected::Failure, false) => Outcomes::Missed,
            (Expected::NoFailure, true) => Outcomes::Passed,
            (Expected::NoFailure, false) => Outcomes::FalseAlarm,
        };
        let seconds = (seconds * 10.0).round() / 10.0;
        Judged { subject, result, checks: entries.len(), objections, seconds }
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judged { subject, checks, objections, seconds, .. } = self;
        match self.result {
            Outcomes::Noticed => {
                write!(f, "  noticed {subject:<10} by {checks} of {checks} checks in {seconds:.1} s")
            }
            Outcomes::Missed => {
                let missed = objections.len();
                write!(f, "  MISSED  {subject:<10} {missed} of {checks} checks: {}", objections.join("; "))
            }
            Outcomes::NotShown => {
                write!(f, "  no case {subject:<10} none of its checks can be shown on this cluster")
            }
            Outcomes::Passed => {
                write!(f, "  passed  {subject}: {checks} of {checks} checks in {seconds:.1} s")
            }
            Outcomes::FalseAlarm => {
                let (alarms, text) = (objections.len(), objections.join("\n    "));
                write!(
                    f,
                    "  FALSE ALARM about {subject}: {alarms} of {checks} checks in {seconds:.1} s\n    {text}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Sharing;

    fn entry(level: Level, outcome: Outcome) -> Entry {
        Entry {
            id: "SVC-01".to_owned(),
            suite: "suite".to_owned(),
            title: "t".to_owned(),
            level,
            sharing: Sharing::Shared,
            outcome,
            duration_ms: 0,
            budget_used_percent: None,
            evidence: None,
            started: String::new(),
            facts: Default::default(),
        }
    }

    #[test]
    fn only_a_failure_notices_and_only_what_binds_is_an_alarm() {
        let fail = || Outcome::Fail { message: "promise: p\nseen: s".to_owned() };
        let error = || Outcome::Error { message: "no answer".to_owned() };
        let skip = || Outcome::Skip { reason: SkipReason::NotObservable, detail: "no faults".to_owned() };
        let objects = |expected: Expected, level, outcome| expected.objection(&entry(level, outcome));
        let (wrong, right) = (Expected::Failure, Expected::NoFailure);
        assert_eq!(objects(wrong, Level::Must, fail()), None);
        assert_eq!(objects(wrong, Level::Must, Outcome::Pass).as_deref(), Some("SVC-01 passes"));
        assert_eq!(objects(wrong, Level::Must, skip()), None);
        assert!(objects(wrong, Level::Must, error()).is_some());
        assert_eq!(objects(right, Level::Must, Outcome::Pass), None);
        assert_eq!(objects(right, Level::Must, skip()), None);
        assert_eq!(objects(right, Level::Info, fail()), None);
        for level in [Level::Must, Level::Should] {
            let alarm = objects(right, level, fail()).expect("an alarm");
            assert_eq!(alarm, "SVC-01\n      promise: p\n      seen: s");
        }
        assert!(objects(right, Level::Info, error()).is_some());
    }

    #[test]
    fn a_mutant_is_noticed_by_failures_and_not_by_what_nobody_could_show() {
        let fail = entry(Level::Should, Outcome::Fail { message: "promise: p".to_owned() });
        let skip = entry(
            Level::Must,
            Outcome::Skip { reason: SkipReason::NotObservable, detail: "too old".to_owned() },
        );
        let pass = entry(Level::Must, Outcome::Pass);
        let of = |entries: &[&Entry]| Judged::of("M".to_owned(), Expected::Failure, entries, 1.0).result;
        assert_eq!(of(&[&fail, &skip]), Outcomes::Noticed);
        assert_eq!(of(&[&skip]), Outcomes::NotShown);
        assert_eq!(of(&[]), Outcomes::NotShown);
        assert_eq!(of(&[&fail, &pass]), Outcomes::Missed);
    }
}
