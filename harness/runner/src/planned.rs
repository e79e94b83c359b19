//! Which checks run: all checks of the suites, each with its level for this CCM and whether it is selected.

use super::schedule::{Arrangement, Declared, arrange};
use super::shard::parts;
use harness_clusters::{Lifetime, facts};
use harness_config::{
    BackendKind, Candidate, Choice, Framework, Offer, Problems, RunPlan, select, unknown_deviations,
};
use harness_core::check::{Before, Isolation, Level, Since};
use harness_core::events::{PlannedCheck, Skipped};
use harness_core::ledger::{Entry, Outcome, SkipReason};
use harness_testkit::{Check, Suite};
use std::collections::BTreeMap;
use std::time::Duration;

/// One check of a run, and whether it is judged.
#[derive(Clone)]
pub struct Planned {
    /// Its suite's name.
    pub suite: &'static str,
    /// The check.
    pub check: &'static Check,
    /// The level that applies to this CCM.
    pub level: Level,
    /// Whether it runs, or why not.
    pub choice: Choice,
    /// Whether it belongs to another part of the run.
    pub elsewhere: bool,
    /// The shortest time of a passing run with this plan, in seconds: soak checks last as long as the plan says.
    pub takes_s: u32,
}

/// Upper limit for the assumed duration of a check, in seconds; some days.
const LONGEST_S: u32 = 1_000_000;

impl Planned {
    /// The test's name.
    pub fn name(&self) -> String {
        format!("{}::{}", self.suite, self.check.id)
    }

    /// The check as it is written to the stream of events.
    pub fn event(&self) -> PlannedCheck {
        PlannedCheck {
            id: self.check.id.to_string(),
            suite: self.suite.to_owned(),
            title: self.check.claim.title.to_owned(),
            level: self.level,
            sharing: self.check.isolation,
            private: self.check.is_private(),
            skipped: match &self.choice {
                Choice::Selected => None,
                Choice::Skip(reason, detail) => Some(Skipped { reason: *reason, detail: detail.clone() }),
            },
        }
    }

    /// A ledger entry with only the description of the check.
    pub fn entry(&self, outcome: Outcome) -> Entry {
        Entry {
            id: self.check.id.to_string(),
            suite: self.suite.to_owned(),
            title: self.check.claim.title.to_owned(),
            level: self.level,
            sharing: self.check.isolation,
            outcome,
            duration_ms: 0,
            budget_used_percent: None,
            evidence: None,
            started: String::new(),
            facts: Default::default(),
        }
    }
}

/// All checks of the suites, each with its level for this CCM and whether it is selected.
///
/// # Errors
/// The selection names a suite or check that does not exist, or the profile declares a deviation from one.
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
    let framework = plan.profile.framework;
    let planned = all.into_iter().zip(choices).map(|((suite, check), choice)| {
        let softened = check.claim.framework_only && framework == Framework::Other;
        let level = match older_than(check, framework) {
            Some(Since { before: Before::NotJudged, .. }) => Level::Info,
            _ if softened => check.claim.level.softer(),
            _ => check.claim.level,
        };
        Planned {
            suite,
            check,
            level,
            choice,
            elsewhere: false,
            takes_s: takes_s(check, plan.selection.soak),
        }
    });
    let mut planned: Vec<Planned> = planned.collect();
    if let Some(share) = plan.selection.shard {
        // All parts, wherever they run, are split by the properties of all checks, never by what one part's cluster can
        // show.
        let known = select(&candidates, &plan.selection, &Offer::declared(&plan.profile))?;
        let chosen: Vec<usize> = (0..planned.len()).filter(|at| known[*at] == Choice::Selected).collect();
        let checks: Vec<Planned> = chosen.iter().map(|at| planned[*at].clone()).collect();
        let parts = parts(&declared(&checks), share.of(), plan.profile.workers);
        for (at, part) in chosen.into_iter().zip(parts) {
            let part = part.map_or(share.part(), |part| part + 1);
            if part != share.part() {
                planned[at].elsewhere = true;
                let detail = format!("in part {part} of {}", share.of());
                planned[at].choice = Choice::Skip(SkipReason::Deselected, detail);
            }
        }
    }
    Ok(planned)
}

fn takes_s(check: &Check, soak: Option<Duration>) -> u32 {
    let soaks = soak.filter(|_| check.soaks);
    soaks.map_or(check.takes_s, |time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX)).min(LONGEST_S)
}

/// The checks of the contract, without a vendor's private checks.
pub fn of_contract(suites: &[Suite]) -> impl Iterator<Item = &'static Check> {
    suites.iter().flat_map(Suite::checks).filter(|check| !check.is_private())
}

/// The framework change on which a check's claim is based, if the declared framework is older.
fn older_than(check: &Check, framework: Framework) -> Option<Since> {
    check.claim.since.filter(|since| !framework.has(since.minor))
}

/// Differences between what is expected of a CCM of this framework and of one of the newest, one text for each change.
pub(super) fn framework_notes(suites: &[Suite], framework: Framework) -> Vec<String> {
    let mut changes: BTreeMap<(u32, &str, &str), BTreeMap<Before, Vec<&str>>> = BTreeMap::new();
    for check in of_contract(suites) {
        if let Some(Since { minor, what, older, before }) = older_than(check, framework) {
            let of_change = changes.entry((minor, what, older)).or_default();
            of_change.entry(before).or_default().push(check.id.as_str());
        }
    }
    let of_change = |((minor, what, older), checks): ((u32, &str, &str), BTreeMap<Before, Vec<&str>>)| {
        let of_before = |(before, checks): (Before, Vec<&str>)| match before {
            Before::NotJudged => format!(" Recorded only: {}.", checks.join(", ")),
            Before::Otherwise(what) => format!(" Instead {} expects: {what}.", checks.join(", ")),
        };
        let checks: String = checks.into_iter().map(of_before).collect();
        format!("framework 1.{minor}. {what} {older}{checks}")
    };
    changes.into_iter().map(of_change).collect()
}

/// The checks that will run.
pub fn selected(planned: &[Planned]) -> Vec<Planned> {
    planned.iter().filter(|one| one.choice == Choice::Selected).cloned().collect()
}

/// The steps of these checks, on a cluster of this backend.
pub fn arranged(checks: &[Planned], lanes: usize, workers: u32, backend: BackendKind) -> Arrangement {
    let real = facts(backend).lifetime == Lifetime::UntilRemoved;
    let mut declared = declared(checks);
    for (one, of) in declared.iter_mut().zip(checks).filter(|_| real) {
        one.crowds = one.isolation == Isolation::DedicatedCluster;
        one.takes_s = one.takes_s.max(of.check.takes_on_machines_s);
    }
    arrange(&declared, lanes, workers)
}

/// How these checks may share their cluster.
pub(super) fn declared(checks: &[Planned]) -> Vec<Declared<'_>> {
    let declared = |one: &Planned| Declared {
        id: one.check.id.as_str(),
        isolation: one.check.isolation,
        disturbs: one.check.disturbs(),
        holds_up: one.check.holds_up,
        hangs: one.check.hangs,
        next_to: one.check.next_to,
        crowds: false,
        takes_s: one.takes_s,
    };
    checks.iter().map(declared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soak_checks_take_the_requested_time() {
        const PLAIN: Check =
            Check::own("A-01", "a claim", "a source", |_| Box::pin(async { Ok(()) })).takes(600);
        const SOAKS: Check =
            Check::own("A-02", "a claim", "a source", |_| Box::pin(async { Ok(()) })).takes(600).soaks();
        let hours = Some(Duration::from_secs(4 * 3600));
        assert_eq!((takes_s(&PLAIN, hours), takes_s(&SOAKS, hours)), (600, 4 * 3600));
        assert_eq!((takes_s(&PLAIN, None), takes_s(&SOAKS, None)), (600, 600));
        let ages = Some(Duration::MAX);
        assert_eq!(takes_s(&SOAKS, ages), LONGEST_S, "sums of it stay numbers");
    }

    #[test]
    fn on_real_machines_a_check_may_take_longer_and_never_less() {
        const FIRST: Check =
            Check::own("A-01", "a claim", "a source", |_| Box::pin(async { Ok(()) })).alone();
        const SLOWER: Check = FIRST.takes(5).takes_on_machines(15);
        const FASTER: Check = FIRST.takes(20).takes_on_machines(15);
        let planned = |check: &'static Check| Planned {
            suite: "suite",
            check,
            level: Level::Must,
            choice: Choice::Selected,
            elsewhere: false,
            takes_s: check.takes_s,
        };
        let steps = |check, backend| arranged(&[planned(check)], 1, 1, backend).steps[0].takes_s;
        let each = |check| [BackendKind::Embedded, BackendKind::Kind].map(|backend| steps(check, backend));
        let [embedded, kind] = each(&SLOWER);
        assert_eq!(kind, embedded + 10);
        let [embedded, kind] = each(&FASTER);
        assert_eq!(kind, embedded);
    }
}
