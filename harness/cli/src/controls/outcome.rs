//! The result of judging one CCM.

use super::work::{Expected, Part};
use harness_core::ledger::{Entry, Outcome};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The result of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Became {
    /// It is faulty, and every check that can show it failed.
    Noticed,
    /// It is faulty, and a check did not fail.
    Missed,
    /// It is faulty in a way that this cluster cannot show.
    NotShown,
    /// It is correct, and no check failed.
    Passed,
    /// It is correct, and a check failed.
    FalseAlarm,
    /// It is hostile, and only the checks about what it breaks failed.
    Endured,
    /// It is hostile, and had other effects.
    Harmed,
}

impl Became {
    /// Whether this is not the expected result.
    pub(super) fn is_amiss(self) -> bool {
        matches!(self, Became::Missed | Became::FalseAlarm | Became::Harmed)
    }
}

/// A subject that was judged, in the form of `controls.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Judged {
    /// Mutant, conforming variant or adversary.
    pub(super) subject: String,
    /// The part of its checks that this is about, if several clusters shared them.
    #[serde(skip)]
    pub(super) part: Option<Part>,
    /// Its result.
    pub(super) result: Became,
    /// How many checks judged it.
    pub(super) checks: usize,
    /// Everything that was not as expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) objections: Vec<String>,
    /// How many seconds it was judged.
    pub(super) seconds: f64,
    /// Whether the environment may be the only reason for an unexpected result, for example a machine that
    /// was too busy. Then it is judged once more, alone.
    #[serde(skip)]
    pub(super) hindered: bool,
}

impl Judged {
    /// The result of a subject, from the entries of its checks.
    pub(super) fn of(subject: String, expected: &Expected, entries: &[&Entry], took: Duration) -> Judged {
        let objections = entries.iter().filter_map(|entry| expected.objection(entry));
        let objections: Vec<String> = objections.chain(expected.objection_to(took)).collect();
        let mut amiss = entries.iter().filter(|entry| expected.objection(entry).is_some()).peekable();
        let hindered = amiss.peek().is_some()
            && amiss.all(|entry| match entry.outcome {
                Outcome::Error { .. } => true,
                // It is faulty, but ended before the check could show it: on a busy machine that is chance.
                Outcome::Blocked { .. } => matches!(expected, Expected::Failure),
                _ => false,
            });
        let shown = entries.iter().any(|entry| !matches!(entry.outcome, Outcome::Skip { .. }));
        let result = match (expected, objections.is_empty()) {
            (Expected::Failure, true) if !shown => Became::NotShown,
            (Expected::Failure, true) => Became::Noticed,
            (Expected::Failure, false) => Became::Missed,
            (Expected::NoFailure, true) => Became::Passed,
            (Expected::NoFailure, false) => Became::FalseAlarm,
            (Expected::Exactly(_), true) => Became::Endured,
            (Expected::Exactly(_), false) => Became::Harmed,
        };
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        Judged { subject, part: None, result, checks: entries.len(), objections, seconds, hindered }
    }

    /// The result of the subject from the checks of both parts.
    pub(super) fn and(mut self, other: Judged) -> Judged {
        let amiss = |one: &Judged| !one.objections.is_empty();
        if self.result == Became::NotShown || amiss(&other) {
            self.result = other.result;
        }
        self.part = None;
        self.checks += other.checks;
        self.objections.extend(other.objections);
        self.seconds += other.seconds;
        self.hindered |= other.hindered;
        self
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judged { part, checks, objections, seconds, .. } = self;
        let subject = &part.map_or(self.subject.clone(), |part| format!("{}, {part}", self.subject));
        let (found, lines) = (objections.len(), objections.join("\n    "));
        let passed = format!("{checks} of {checks} checks in {seconds:.1} s");
        match self.result {
            Became::Noticed => write!(f, "  noticed {subject:<10} by {passed}"),
            Became::Missed => {
                write!(f, "  MISSED  {subject:<10} {found} of {checks} checks: {}", objections.join("; "))
            }
            Became::NotShown => {
                write!(f, "  no case {subject:<10} none of its checks can be shown on this cluster")
            }
            Became::Passed => write!(f, "  passed  {subject}: {passed}"),
            Became::FalseAlarm => {
                write!(
                    f,
                    "  FALSE ALARM about {subject}: {found} of {checks} checks in {seconds:.1} s\n    {lines}"
                )
            }
            Became::Endured => write!(f, "  endured {subject}: {passed}"),
            Became::Harmed => {
                write!(
                    f,
                    "  HARMED  by {subject}: {found} objections to {checks} checks in {seconds:.1} s\n    {lines}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::entry;
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::SkipReason;

    #[test]
    fn an_environment_error_is_distinguished_from_a_missed_mutant() {
        let error = entry(Level::Must, Outcome::Error { message: "the machine is too slow".to_owned() });
        let (fail, pass) = (Outcome::Fail { message: "promise: p".to_owned() }, Outcome::Pass);
        let (fail, pass) = (entry(Level::Must, fail), entry(Level::Must, pass));
        let hindered = |expected: &Expected, entries: &[&Entry]| {
            Judged::of("M".to_owned(), expected, entries, Duration::from_secs(1)).hindered
        };
        assert!(hindered(&Expected::Failure, &[&fail, &error]));
        assert!(!hindered(&Expected::Failure, &[&pass, &error]));
        assert!(!hindered(&Expected::Failure, &[&fail]));
        assert!(hindered(&Expected::NoFailure, &[&pass, &error]));
        assert!(!hindered(&Expected::NoFailure, &[&fail, &error]));
        let blocked = Outcome::Blocked { by: "OBS-10".to_owned(), message: "it restarted".to_owned() };
        let blocked = entry(Level::Must, blocked);
        assert!(hindered(&Expected::Failure, &[&fail, &blocked]));
        assert!(!hindered(&Expected::NoFailure, &[&pass, &blocked]));
    }

    #[test]
    fn parts_are_one_subject_and_its_worst_counts() {
        let expected = Expected::NoFailure;
        let of = |outcome| {
            let entry = entry(Level::Must, outcome);
            Judged::of("S".to_owned(), &expected, &[&entry], Duration::from_secs(2))
        };
        let (right, wrong) = (of(Outcome::Pass), of(Outcome::Fail { message: "promise: p".to_owned() }));
        for both in [right.clone().and(wrong.clone()), wrong.and(right.clone())] {
            assert_eq!((both.result, both.checks, both.objections.len()), (Became::FalseAlarm, 2, 1));
            assert_eq!(both.seconds, 4.0);
        }
        let nothing = Judged::of("S".to_owned(), &Expected::Failure, &[], Duration::ZERO);
        assert_eq!(nothing.result, Became::NotShown);
        assert_eq!(nothing.and(right).result, Became::Passed);
    }

    #[test]
    fn a_mutant_is_caught_by_failures_and_not_by_unobservable_checks() {
        let fail = entry(Level::Should, Outcome::Fail { message: "promise: p".to_owned() });
        let skip = entry(
            Level::Should,
            Outcome::Skip { reason: SkipReason::NotObservable, detail: "too old".to_owned() },
        );
        let pass = entry(Level::Should, Outcome::Pass);
        let of = |entries: &[&Entry]| {
            Judged::of("M".to_owned(), &Expected::Failure, entries, Duration::from_secs(1)).result
        };
        assert_eq!(of(&[&fail, &skip]), Became::Noticed);
        assert_eq!(of(&[&skip]), Became::NotShown);
        assert_eq!(of(&[]), Became::NotShown);
        assert_eq!(of(&[&fail, &pass]), Became::Missed);
    }
}
