//! Selecting, ordering and running checks through libtest-mimic, and writing down how each ended.

mod one;
mod order;

pub use one::run_one;
pub use order::Phases;

use crate::check::{Level, Sharing};
use crate::config::{Candidate, Choice, Framework, Offer, Problems, RunPlan, select};
use crate::cx::{Check, Suite};
use crate::ledger::{Entry, Outcome, SkipReason};
use crate::session::Session;
use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;

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
/// When the selection names a suite or check that does not exist.
pub fn plan_checks(
    suites: &'static [Suite],
    plan: &RunPlan,
    offer: &Offer,
) -> Result<Vec<Planned>, Problems> {
    let all: Vec<(&'static str, &'static Check)> =
        suites.iter().flat_map(|suite| suite.checks().map(|check| (suite.name, check))).collect();
    let candidates: Vec<Candidate> =
        suites.iter().flat_map(|suite| suite.checks().map(|check| Candidate::of(suite, check))).collect();
    let choices = select(&candidates, &plan.selection, offer)?;
    let framework = plan.profile.framework != Framework::Other;
    let planned = all.into_iter().zip(choices).map(|((suite, check), choice)| {
        let softened = check.framework_only && !framework && check.level == Level::Must;
        let level = if softened { Level::Should } else { check.level };
        Planned { suite, check, level, choice }
    });
    Ok(planned.collect())
}

/// Whether libtest's own arguments leave a test out.
pub fn is_filtered_out(arguments: &Arguments, name: &str) -> bool {
    let fits =
        |pattern: &String| if arguments.exact { name == pattern } else { name.contains(pattern.as_str()) };
    arguments.filter.as_ref().is_some_and(|filter| !fits(filter)) || arguments.skip.iter().any(fits)
}

/// Orders trials so that phases follow one another and long checks start first.
pub fn in_order(mut planned: Vec<Planned>) -> Vec<Planned> {
    planned.sort_by_key(|p| (order::phase(p.check.sharing), std::cmp::Reverse(p.check.takes_s)));
    planned
}

/// Runs every selected check and returns an entry for each check there is, in the order of `planned`.
///
/// Runs on the calling thread and as many more as `arguments` say; bodies are driven by `handle`'s runtime.
pub fn run_all(
    session: &Arc<Session>,
    planned: &[Planned],
    arguments: &Arguments,
    handle: &Handle,
) -> (Vec<Entry>, Conclusion) {
    let entries = Arc::new(Mutex::new(Vec::<Entry>::new()));
    let mut chosen = Vec::new();
    for one in planned {
        match &one.choice {
            Choice::Skip(reason, detail) => {
                let outcome = Outcome::Skip { reason: *reason, detail: detail.clone() };
                entries.lock().expect("no holder of this lock panics").push(one.entry(outcome));
            }
            Choice::Selected if is_filtered_out(arguments, &one.name()) => {
                let detail = "left out by the test filter".to_owned();
                let outcome = Outcome::Skip { reason: SkipReason::Deselected, detail };
                entries.lock().expect("no holder of this lock panics").push(one.entry(outcome));
            }
            Choice::Selected => chosen.push(one.clone()),
        }
    }
    let chosen = in_order(chosen);
    // Those that watch the leader crash wait for one another: only where each has a thread.
    let joint = chosen.iter().filter(|one| one.check.sharing == Sharing::Joint).count();
    let threads = arguments.test_threads.unwrap_or(1);
    session.crashes().expect_participants(if joint < threads { joint } else { 1 });
    let phases = Arc::new(Phases::of(chosen.iter().map(|one| one.check.sharing)));
    let mut trials: Vec<Trial> = chosen
        .into_iter()
        .map(|one| {
            let (session, phases) = (session.clone(), phases.clone());
            let (entries, handle) = (entries.clone(), handle.clone());
            let name = one.name();
            Trial::ignorable_test(name, move || {
                let _turn = phases.wait_for(one.check.sharing);
                let entry = handle.block_on(run_one(session, &one));
                let completion = completion(&entry);
                entries.lock().expect("no holder of this lock panics").push(entry);
                completion
            })
        })
        .collect();
    trials.extend(skipped_trials(planned));
    // libtest-mimic itself filters by the same rule; what it leaves out has its entry already.
    let conclusion = libtest_mimic::run(arguments, trials);
    let mut entries = std::mem::take(&mut *entries.lock().expect("no holder of this lock panics"));
    let position = |entry: &Entry| planned.iter().position(|p| p.check.id == entry.id);
    entries.sort_by_key(position);
    (entries, conclusion)
}

/// Tests for what the profile does not declare or the backend cannot show: listed, and ignored.
pub fn skipped_trials(planned: &[Planned]) -> Vec<Trial> {
    planned
        .iter()
        .filter_map(|one| match &one.choice {
            Choice::Skip(SkipReason::Deselected, _) | Choice::Selected => None,
            Choice::Skip(SkipReason::NotDeclared | SkipReason::NotObservable, detail) => {
                let detail = detail.clone();
                let trial = Trial::ignorable_test(one.name(), move || Ok(Completion::ignored_with(detail)));
                Some(trial.with_ignored_flag(true))
            }
        })
        .collect()
}

/// What libtest is told of an entry.
pub fn completion(entry: &Entry) -> Result<Completion, Failed> {
    match &entry.outcome {
        Outcome::Pass => Ok(Completion::Completed),
        Outcome::Skip { detail, .. } => Ok(Completion::ignored_with(detail)),
        Outcome::Fail { message } => {
            let evidence = entry.evidence.as_ref().map(|e| format!("\nevidence:  {e}")).unwrap_or_default();
            Err(format!("{} {}: {}\n{message}{evidence}", entry.id, entry.level, entry.title).into())
        }
        Outcome::Error { message } => Err(format!("{} environment error\n{message}", entry.id).into()),
    }
}
