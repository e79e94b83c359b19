//! The subjects to judge, and the expected results.

use super::list::{Adversary, Mutant, Variant};
use harness_clouds::Settings;
use harness_components::component::Component;
use harness_config::{Choice, RunPlan};
use harness_core::check::{CheckId, Isolation, Level};
use harness_core::ledger::{Entry, Outcome, SkipReason};
use harness_runner::Planned;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// How checks are expected to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// They fail: the CCM is faulty, or missing.
    Failure,
    /// None of them fails: the CCM is correct.
    NoFailure,
    /// Some fail, some are blocked, the others pass, and all of it in time: the CCM is hostile.
    Exactly(Hostility),
}

/// The allowed effects of a hostile CCM.
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
    /// The part of its checks that this is, if several clusters share them.
    pub(super) part: Option<Part>,
    pub(super) plan: RunPlan,
    pub(super) expected: Expected,
    /// The checks that judge it.
    pub(super) checks: BTreeSet<String>,
    /// The settings of the cloud during that time.
    pub(super) cloud: Settings,
    /// How many checks run at the same time; all that can if absent.
    pub(super) jobs: Option<u32>,
    /// How many of its checks share the cluster at the same time.
    pub(super) at_once: usize,
    /// How many seconds its checks take when they pass: those that share a cluster together, the others one by one.
    pub(super) takes_s: u32,
    /// Whether it was judged before, and the environment was in the way.
    pub(super) again: bool,
    /// Whether no other CCM may be judged at the same time.
    pub(super) alone: bool,
}

/// A part of a subject's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of the part, from 1.
    number: usize,
    of: usize,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.number, self.of)
    }
}

/// Whether a check shares its cluster with others at the same time.
fn can_run_next_to_others(one: &Planned) -> bool {
    match one.check.isolation {
        Isolation::NoCluster
        | Isolation::DedicatedCluster
        | Isolation::Shared
        | Isolation::SharedCrash
        | Isolation::Quiet => true,
        Isolation::Alone | Isolation::FreshCluster | Isolation::AfterTheRun => false,
    }
}

/// How many seconds these checks take when they pass.
fn takes_s<'a>(checks: impl IntoIterator<Item = &'a Planned>) -> u32 {
    let (mut together, mut alone) = (0, 0);
    for one in checks {
        match can_run_next_to_others(one) {
            true => together = one.takes_s.max(together),
            false => alone += one.takes_s,
        }
    }
    together + alone
}

/// Distributes the checks over this many clusters, none of them without checks. Checks that run alone go one by
/// one to the cluster that finishes first. Checks that share a cluster stay together, as more of them do not
/// take longer; if few may run at once, each cluster gets the same number.
fn dealt<'a>(checks: &[&'a Planned], clusters: usize, jobs: Option<u32>) -> Vec<Vec<&'a Planned>> {
    let (together, mut alone): (Vec<&Planned>, Vec<&Planned>) =
        checks.iter().copied().partition(|one| can_run_next_to_others(one));
    let clusters = clusters.max(1);
    let mut parts = vec![Vec::new(); clusters];
    let crowded = jobs.is_some_and(|jobs| together.len() > FULL_TURNS * jobs as usize);
    for (at, one) in together.into_iter().enumerate() {
        parts[if crowded { at % clusters } else { 0 }].push(one);
    }
    alone.sort_by_key(|one| Reverse(one.takes_s));
    for one in alone {
        let first = parts.iter_mut().min_by_key(|part| takes_s(part.iter().copied()));
        first.expect("a part at least").push(one);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// How many times every place for a check may be used again before more places are needed.
const FULL_TURNS: usize = 8;

/// Whether a check is a binding MUST for the CCM.
fn binds(planned: &&Planned) -> bool {
    planned.choice == Choice::Selected && planned.level == Level::Must
}

impl Work {
    /// Whether it has its own environment: it needs no CCM, or a hosted one, or the three machines of an upgrade.
    pub(super) fn is_apart(&self) -> bool {
        !self.plan.profile.has_ccm() || self.plan.profile.is_hosted() || self.plan.old_release.is_some()
    }

    /// Whether enough checks judge it at once to keep a core busy.
    pub(super) fn is_large(&self) -> bool {
        self.at_once > 40 && self.jobs.is_none_or(|jobs| jobs > 8)
    }

    /// A subject that these checks judge, in an ordinary cloud.
    fn by(checks: &[&Planned], plan: RunPlan, subject: String, expected: Expected) -> Work {
        Work {
            subject,
            part: None,
            plan,
            expected,
            checks: checks.iter().map(|p| p.check.id.to_string()).collect(),
            cloud: Settings::default(),
            jobs: None,
            at_once: checks.iter().filter(|one| can_run_next_to_others(one)).count(),
            takes_s: takes_s(checks.iter().copied()),
            again: false,
            alone: false,
        }
    }

    /// The same subject with its checks distributed over this many clusters, each with its own folder.
    fn on_clusters(checks: &[&Planned], clusters: usize, whole: &Work) -> Vec<Work> {
        let parts = dealt(checks, clusters, whole.jobs);
        let of = parts.len();
        let work = parts.iter().zip(1..).map(|(checks, number)| {
            let mut plan = whole.plan.clone();
            let part = (of > 1).then_some(Part { number, of });
            if part.is_some() {
                plan.output = plan.output.join(number.to_string());
            }
            let (subject, expected) = (whole.subject.clone(), whole.expected.clone());
            let by = Work::by(checks, plan, subject, expected);
            Work { part, jobs: whole.jobs, alone: whole.alone, cloud: whole.cloud.clone(), ..by }
        });
        work.collect()
    }

    /// The null CCM, with every MUST of `everything`.
    pub(super) fn of_nothing(
        what: &str,
        plan: RunPlan,
        everything: &[Planned],
        clusters: usize,
    ) -> Vec<Work> {
        let chosen: Vec<&Planned> = everything.iter().filter(binds).collect();
        let whole = Work::by(&[], plan, what.to_owned(), Expected::Failure);
        Work::on_clusters(&chosen, clusters, &whole)
    }

    /// A mutant with the plan of its profile, and the binding checks that are named for it, MUST or SHOULD.
    ///
    /// # Errors
    /// When a named check does not exist or does not apply to it.
    pub(super) fn of_mutant(
        control: &Mutant,
        mut plan: RunPlan,
        everything: &[Planned],
    ) -> Result<Work, String> {
        let Mutant { mutant, what, checks, .. } = control;
        plan.output = plan.output.join(mutant);
        plan.profile.name.push_str(&format!(", {mutant} ({what})"));
        let bound = |p: &&Planned| p.choice == Choice::Selected && p.level != Level::Info;
        let bound: Vec<&Planned> = everything.iter().filter(bound).collect();
        let ids: Vec<CheckId> = bound.iter().map(|p| p.check.id).collect();
        if let Some(unknown) = checks.iter().find(|name| !ids.iter().any(|id| id.is_named(name))) {
            return Err(format!("mutant {mutant}: no check {unknown} binds it"));
        }
        let named: Vec<&Planned> = bound.into_iter().filter(|p| control.is_for(p.check.id, &ids)).collect();
        Ok(Work::by(&named, plan, mutant.clone(), Expected::Failure))
    }

    /// An adversary, with the checks that are named for it.
    ///
    /// # Errors
    /// When a named check does not exist.
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
        plan.profile.name.push_str(&format!(", {adversary} ({what})"));
        let selected = || everything.iter().filter(|p| p.choice == Choice::Selected);
        let named = |names: &[&String]| -> BTreeSet<String> {
            let of = selected().filter(|p| names.iter().any(|id| p.check.id.is_named(id)));
            of.map(|p| p.check.id.to_string()).collect()
        };
        // A row fails, except for its claims that pass.
        let passes = named(&passes.iter().collect::<Vec<_>>());
        let hostility = Hostility {
            fails: &named(&fails.iter().collect::<Vec<_>>()) - &passes,
            blocked: named(&blocked.iter().collect::<Vec<_>>()),
            within: Duration::from_secs(*within),
        };
        let met: Vec<&Planned> =
            selected().filter(|p| one.checks().any(|id| p.check.id.is_named(id))).collect();
        let by = Work::by(&met, plan, format!("{adversary} ({what})"), Expected::Exactly(hostility));
        Ok(Work { alone: *alone, ..by })
    }

    /// A conforming variant with the plan of its profile, and all checks of `everything` that apply to it: in
    /// parts if several clusters share its checks.
    ///
    /// # Errors
    /// When none apply.
    pub(super) fn of_variant(
        one: &Variant,
        component: &dyn Component,
        plan: &RunPlan,
        everything: &[Planned],
    ) -> Result<Vec<Work>, String> {
        let met = everything.iter().filter(|p| p.choice == Choice::Selected);
        let met: Vec<&Planned> = met.filter(|p| one.meets(p.suite, p.check.id)).collect();
        if met.is_empty() {
            return Err(format!("variant {}: no check applies to it", one.variant));
        }
        let mut plan = plan.clone();
        plan.output = plan.output.join(&one.variant);
        plan.profile.name.push_str(&format!(", {} ({})", one.variant, one.what));
        let jobs = Some(one.jobs.unwrap_or(plan.jobs));
        let subject = format!("{} ({})", one.variant, one.what);
        let whole = Work::by(&[], plan, subject, Expected::NoFailure);
        let whole = Work { jobs, alone: component.is_timed(), cloud: one.cloud.clone(), ..whole };
        Ok(Work::on_clusters(&met, one.clusters.unwrap_or(1), &whole))
    }
}

impl Expected {
    /// The reason why an entry is not as expected. If a failure is expected, only a failure is accepted,
    /// except for checks that this cluster cannot show. A correct CCM fails no binding check, and has no
    /// environment error.
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

    /// The reason why the whole result is not as expected: it took too long.
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
    use harness_config::{BackendKind, RunFile, Source};
    use harness_testkit::Check;

    const SHARED: Check = Check::own("A-01", "t", "s", |_| Box::pin(async { Ok(()) }));
    const ALONE: Check = Check::own("A-02", "t", "s", |_| Box::pin(async { Ok(()) })).alone();

    fn planned(check: &'static Check, takes_s: u32) -> Planned {
        let (level, choice) = (Level::Must, Choice::Selected);
        Planned { suite: "suite", check, level, choice, elsewhere: false, takes_s }
    }

    #[test]
    fn parts_of_what_is_judged_alone_are_judged_alone() {
        let wanted = harness_config::plan(&Source::Defaults, RunFile::default()).expect("a plan");
        let cluster = wanted.cluster.clone().settled(BackendKind::Embedded);
        let whole = Work::by(&[], wanted.on(cluster), "S".to_owned(), Expected::NoFailure);
        let whole = Work { alone: true, jobs: Some(3), ..whole };
        let all = [planned(&ALONE, 4), planned(&ALONE, 3)];
        let parts = Work::on_clusters(&all.iter().collect::<Vec<_>>(), 2, &whole);
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|part| part.alone && part.jobs == Some(3)));
    }

    #[test]
    fn checks_that_run_alone_are_dealt_out_and_the_others_stay_together() {
        let of = planned;
        let all: Vec<Planned> =
            [of(&SHARED, 9), of(&SHARED, 7), of(&ALONE, 4), of(&ALONE, 3), of(&ALONE, 8)].into();
        let all: Vec<&Planned> = all.iter().collect();
        let times = |clusters| -> Vec<Vec<u32>> {
            let parts = dealt(&all, clusters, None);
            parts.iter().map(|part| part.iter().map(|one| one.takes_s).collect()).collect()
        };
        assert_eq!(times(1), [vec![9, 7, 8, 4, 3]]);
        assert_eq!(times(2), [vec![9, 7, 3], vec![8, 4]]);
        assert_eq!(times(9).len(), 4, "every job gets something");
        assert_eq!(dealt(&all[2..], 2, None).len(), 2);
        assert!(dealt(&[], 3, None).is_empty());
        let many: Vec<&Planned> = [all[0]; 20].to_vec();
        let sizes = |jobs| dealt(&many, 2, Some(jobs)).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!((sizes(2), sizes(3)), (vec![10, 10], vec![20]));
    }

    /// An entry with the outcome of one check.
    pub(in crate::controls) fn entry(level: Level, outcome: Outcome) -> Entry {
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
        // The outcomes that each list accepts: a failure, being blocked, passing, an environment error.
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
