//! What is judged, and when a judgement is as it should be.

use super::list::{Adversary, Mutant, Stranger};
use crate::check::{CheckId, Level, Sharing};
use crate::cloud::Settings;
use crate::config::{Choice, RunPlan};
use crate::ledger::{Entry, Outcome, SkipReason};
use crate::run::Planned;
use std::collections::BTreeSet;
use std::time::Duration;

/// How checks must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// They fail: the CCM is wrong, or there is none.
    Failure,
    /// None of them fails: the CCM is right.
    NoFailure,
    /// Some fail, some are blocked, the others pass, and all of it in time: the CCM is hostile.
    Exactly(Hostility),
}

/// What a hostile CCM may bring about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hostility {
    fails: BTreeSet<String>,
    blocked: BTreeSet<String>,
    within: Duration,
}

/// A CCM to be judged.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) subject: String,
    pub(super) plan: RunPlan,
    pub(super) expected: Expected,
    /// The checks it is judged by.
    pub(super) checks: BTreeSet<String>,
    /// How the cloud is meanwhile.
    pub(super) cloud: Settings,
    /// Checks that run side by side; without it all that may.
    pub(super) jobs: Option<u32>,
    /// How many seconds its checks take when they pass: those that share a cluster at once, the others one by one.
    pub(super) takes_s: u32,
    /// Whether it was judged before, and the environment was in the way.
    pub(super) again: bool,
    /// Whether no other CCM may be judged meanwhile.
    pub(super) alone: bool,
}

/// How many seconds so many checks take when they pass.
fn takes_s<'a>(checks: impl Iterator<Item = &'a Planned>) -> u32 {
    let (mut together, mut alone) = (0, 0);
    for Planned { check, .. } in checks {
        match check.sharing {
            Sharing::Apart | Sharing::Own | Sharing::Shared | Sharing::Joint | Sharing::Calm => {
                together = check.takes_s.max(together)
            }
            Sharing::Exclusive | Sharing::Cold | Sharing::Standing => alone += check.takes_s,
        }
    }
    together + alone
}

/// Whether a check binds the CCM as a MUST.
fn binds(planned: &&Planned) -> bool {
    planned.choice == Choice::Selected && planned.level == Level::Must
}

impl Work {
    /// Whether it has an environment of its own: it needs no CCM, or one that is hosted.
    pub(super) fn is_apart(&self) -> bool {
        !self.plan.profile.has_ccm() || self.plan.profile.is_hosted()
    }

    /// Whether so many checks judge it that they alone keep a core busy.
    pub(super) fn is_large(&self) -> bool {
        self.checks.len() > 40 && self.jobs.is_none_or(|jobs| jobs > 8)
    }

    /// Nobody at all, by every MUST of `everything`.
    pub(super) fn of_nothing(what: &str, plan: RunPlan, everything: &[Planned]) -> Work {
        let checks = everything.iter().filter(binds).map(|p| p.check.id.to_string()).collect();
        let (subject, expected, cloud) = (what.to_owned(), Expected::Failure, Settings::default());
        Work { subject, plan, expected, checks, cloud, jobs: None, takes_s: 0, again: false, alone: false }
    }

    /// A mutant with the plan of its profile, by what is named for it and binds it, MUST or SHOULD.
    ///
    /// # Errors
    /// When there is no check of a name that applies to it.
    pub(super) fn of_mutant(
        control: &Mutant,
        mut plan: RunPlan,
        everything: &[Planned],
    ) -> Result<Work, String> {
        let Mutant { mutant, checks, .. } = control;
        plan.output = plan.output.join(mutant);
        let bound = |p: &&Planned| p.choice == Choice::Selected && p.level != Level::Info;
        let bound: Vec<CheckId> = everything.iter().filter(bound).map(|p| p.check.id).collect();
        if let Some(unknown) = checks.iter().find(|name| !bound.iter().any(|id| id.is_named(name))) {
            return Err(format!("mutant {mutant}: no check {unknown} binds it"));
        }
        let named = bound.iter().filter(|id| control.is_for(**id, &bound));
        let named: BTreeSet<String> = named.map(ToString::to_string).collect();
        let (expected, cloud) = (Expected::Failure, Settings::default());
        let takes_s = takes_s(everything.iter().filter(|p| named.contains(p.check.id.as_str())));
        Ok(Work {
            subject: mutant.clone(),
            plan,
            expected,
            checks: named,
            cloud,
            jobs: None,
            takes_s,
            again: false,
            alone: false,
        })
    }

    /// An adversary, by the checks named for it.
    ///
    /// # Errors
    /// When there is no check of a name.
    pub(super) fn of_adversary(
        one: &Adversary,
        plan: &RunPlan,
        everything: &[Planned],
    ) -> Result<Work, String> {
        let Adversary { adversary, what, fails, blocked, passes, within, alone, .. } = one;
        if let Some(unknown) = one.checks().find(|id| !everything.iter().any(|p| p.check.id.is_named(id))) {
            return Err(format!("adversary {adversary}: no check {unknown}"));
        }
        if !one.is_blamed_or_says_why() {
            let what =
                "name the checks that fail on it or are blocked, or under 'unblamed' why there are none";
            return Err(format!("adversary {adversary}: {what}"));
        }
        let mut plan = plan.clone();
        plan.profile.extra_arguments.push(format!("--adversary={adversary}"));
        plan.output = plan.output.join(adversary);
        let selected = || everything.iter().filter(|p| p.choice == Choice::Selected);
        let named = |names: &[&String]| -> BTreeSet<String> {
            let of = selected().filter(|p| names.iter().any(|id| p.check.id.is_named(id)));
            of.map(|p| p.check.id.to_string()).collect()
        };
        // A row fails but for those of its claims that pass.
        let passes = named(&passes.iter().collect::<Vec<_>>());
        let hostility = Hostility {
            fails: &named(&fails.iter().collect::<Vec<_>>()) - &passes,
            blocked: named(&blocked.iter().collect::<Vec<_>>()),
            within: Duration::from_secs(*within),
        };
        let (checks, expected) = (named(&one.checks().collect::<Vec<_>>()), Expected::Exactly(hostility));
        let (subject, cloud) = (format!("{adversary} ({what})"), Settings::default());
        Ok(Work {
            subject,
            plan,
            expected,
            checks,
            cloud,
            jobs: None,
            takes_s: 0,
            again: false,
            alone: *alone,
        })
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
        let jobs = Some(one.jobs.unwrap_or(plan.jobs));
        Ok(Work {
            subject,
            plan,
            expected,
            checks,
            cloud: one.cloud.clone(),
            jobs,
            takes_s: 0,
            again: false,
            alone: false,
        })
    }
}

impl Expected {
    /// Why an entry is not as expected. Where a failure is expected only a failure will do, but for what this cluster cannot
    /// show; a right CCM fails nothing that binds it, and meets no trouble of the machinery.
    pub(super) fn objection(&self, entry: &Entry) -> Option<String> {
        let Entry { id, outcome, level, .. } = entry;
        match (self, outcome) {
            (Expected::Exactly(hostile), _) if hostile.fails.contains(id) => {
                Expected::Failure.objection(entry)
            }
            (Expected::Exactly(hostile), Outcome::Blocked { .. }) if hostile.blocked.contains(id) => None,
            (Expected::Exactly(hostile), Outcome::Pass) if hostile.blocked.contains(id) => {
                Some(format!("{id} passes"))
            }
            (Expected::Failure, Outcome::Fail { .. }) => None,
            (Expected::Failure, Outcome::Skip { reason: SkipReason::NotObservable, .. }) => None,
            (Expected::Failure, Outcome::Skip { detail, .. }) => {
                Some(format!("{id} was not judged: {detail}"))
            }
            (Expected::Failure, Outcome::Pass) => Some(format!("{id} passes")),
            (Expected::Failure, Outcome::Blocked { by, .. }) => Some(format!("{id} was blocked by {by}")),
            (Expected::Failure, Outcome::Error { message }) => {
                let first = message.lines().next().unwrap_or_default();
                Some(format!("{id}: environment error: {first}"))
            }
            (_, Outcome::Pass | Outcome::Skip { .. }) => None,
            (Expected::NoFailure, Outcome::Fail { .. }) if *level == Level::Info => None,
            (_, Outcome::Blocked { by, message }) => {
                Some(format!("{id}: blocked by {by}\n      {}", message.lines().next().unwrap_or_default()))
            }
            (_, Outcome::Fail { message }) => {
                let lines: Vec<&str> = message.lines().take(5).collect();
                Some(format!("{id}\n      {}", lines.join("\n      ")))
            }
            (_, Outcome::Error { message }) => {
                let words: String = message.lines().next().unwrap_or_default().chars().take(400).collect();
                Some(format!("{id}: environment error\n      {words}"))
            }
        }
    }

    /// Why the whole judgement is not as expected: it took too long.
    pub(super) fn objection_to(&self, took: Duration) -> Option<String> {
        match self {
            Expected::Exactly(Hostility { within, .. }) if took > *within => {
                Some(format!("took {:.0} s, not {} s", took.as_secs_f64(), within.as_secs()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What became of one check.
    pub(in crate::cli::controls) fn entry(level: Level, outcome: Outcome) -> Entry {
        Entry::sample("SVC-01", level, outcome)
    }

    #[test]
    fn only_a_failure_notices_and_only_what_binds_is_an_alarm() {
        let fail = || Outcome::Fail { message: "promise: p\nseen: s".to_owned() };
        let error = || Outcome::Error { message: "no answer".to_owned() };
        let skip = || Outcome::Skip { reason: SkipReason::NotObservable, detail: "no faults".to_owned() };
        let objects = |expected: &Expected, level, outcome| expected.objection(&entry(level, outcome));
        let (wrong, right) = (&Expected::Failure, &Expected::NoFailure);
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
    fn a_hostile_ccm_fails_what_it_breaks_and_nothing_else_in_time() {
        let hostile = |fails: &[&str], blocked: &[&str]| {
            let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let within = Duration::from_secs(9);
            Expected::Exactly(Hostility { fails: set(fails), blocked: set(blocked), within })
        };
        let objects = |expected: &Expected, outcome| expected.objection(&entry(Level::Must, outcome));
        let fail = || Outcome::Fail { message: "promise: p".to_owned() };
        let error = || Outcome::Error { message: "no answer".to_owned() };
        let blocked = || Outcome::Blocked { by: "OBS-10".to_owned(), message: "m".to_owned() };
        // Which outcome each list accepts: a failure, being blocked, passing, an environment error.
        for (expected, accepted) in [
            (hostile(&["SVC-01"], &[]), [true, false, false, false]),
            (hostile(&[], &["SVC-01"]), [false, true, false, false]),
            (hostile(&["SVC-02"], &["SVC-03"]), [false, false, true, false]),
        ] {
            let seen =
                [fail(), blocked(), Outcome::Pass, error()].map(|one| objects(&expected, one).is_none());
            assert_eq!(seen, accepted, "{expected:?}");
            assert_eq!(expected.objection_to(Duration::from_secs(9)), None);
            assert!(expected.objection_to(Duration::from_secs(10)).is_some());
        }
        assert_eq!(Expected::NoFailure.objection_to(Duration::from_secs(10)), None);
    }
}
