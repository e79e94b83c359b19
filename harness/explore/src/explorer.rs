//! Carries out trials in parallel environments until there is nothing left to try or the time is over.

use crate::divergence::Broken;
use crate::environments::{Environments, Lane};
use crate::finding::{Finding, Seen};
use crate::pattern::{PATTERNS, Pattern};
use crate::plan::Plan;
use crate::queue::{Next, Queue};
use crate::results::{Results, SharedResults, Trialed};
use crate::scenario::Scenario;
use crate::shrink::smaller;
use crate::trial::{Outcome, Tried};
use harness_config::RunPlan;
use harness_core::events::Events;
use harness_core::ledger::Share;
use harness_core::probe::pause;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// In how many trials a finding must be seen to be stable.
const TRIALS_OF_A_FINDING: u32 = 3;
/// How many smaller plans are tried for one finding.
const MOST_SMALLER: usize = 8;
/// Longer than any exploration.
const WITHOUT_END: Duration = Duration::from_secs(7 * 86_400);

/// Why an exploration ended before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The CCM did not start to work, in two environments.
    #[error("the CCM under test does not start to work, so there is nothing to explore:\n{0}")]
    NotStarted(String),
    /// An environment could not be created, or a trial panicked.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for Stopped {
    fn from(why: String) -> Stopped {
        Stopped::Failed(why)
    }
}

/// What is explored, and how long.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// The patterns; all if empty.
    pub patterns: Vec<Pattern>,
    /// Findings that must not be seen again. They are tried first.
    pub known: Vec<Finding>,
    /// How many pairs of faults are tried after all single ones, at most.
    pub most_pairs: usize,
    /// After this time no trial begins, and those in progress are ended without a result.
    pub budget: Duration,
    /// How many environments work at the same time.
    pub jobs: usize,
    /// Chooses the order of the plans and the pairs, and so which are left out if the time is not enough.
    pub seed: u64,
    /// The part of all plans that is tried; all if absent.
    pub shard: Option<Share>,
    /// After how many findings the exploration ends.
    pub most_findings: usize,
}

/// The state that the parallel environments share.
struct Shared<'a> {
    queue: Mutex<Queue>,
    /// Wakes those that wait for work.
    news: Condvar,
    results: &'a SharedResults,
    /// In how many trials a finding is looked for.
    trials_of_a_finding: u32,
    most_findings: usize,
    began: Instant,
    events: &'a Events,
    /// Ends the trials in progress: the exploration is interrupted, its time is over, or it has found enough.
    stop: &'a CancellationToken,
    failed: AtomicBool,
    done: AtomicUsize,
}

/// Explores a CCM, and adds each trial and each finding to `results` as soon as it has ended.
///
/// # Errors
/// See [`Stopped`].
pub fn explore(
    plan: &Arc<RunPlan>,
    exploration: &Exploration,
    results: &SharedResults,
    handle: &Handle,
    events: &Events,
    cancel: &CancellationToken,
) -> Result<(), Stopped> {
    let known = exploration.known.iter().map(Finding::plan);
    let plain = exploration.scenarios.iter().cloned().map(Plan::plain);
    let first = known.chain(plain).collect();
    run(plan, exploration, (first, TRIALS_OF_A_FINDING), results, (handle, events, cancel))
}

/// Carries out what a finding says, three times, each time in a new environment.
///
/// # Errors
/// As [`explore`].
pub fn replay(
    plan: &Arc<RunPlan>,
    finding: &Finding,
    results: &SharedResults,
    handle: &Handle,
    events: &Events,
    cancel: &CancellationToken,
) -> Result<(), Stopped> {
    let times = TRIALS_OF_A_FINDING as usize;
    let exploration = Exploration {
        scenarios: Vec::new(),
        patterns: Vec::new(),
        known: Vec::new(),
        most_pairs: 0,
        budget: WITHOUT_END,
        jobs: times,
        seed: 0,
        shard: None,
        most_findings: times,
    };
    let first = std::iter::repeat_n(finding.plan(), times).collect();
    run(plan, &exploration, (first, 1), results, (handle, events, cancel))
}

fn run(
    plan: &Arc<RunPlan>,
    exploration: &Exploration,
    (first, trials_of_a_finding): (Vec<Plan>, u32),
    results: &SharedResults,
    (handle, events, cancel): (&Handle, &Events, &CancellationToken),
) -> Result<(), Stopped> {
    let patterns =
        if exploration.patterns.is_empty() { PATTERNS.to_vec() } else { exploration.patterns.clone() };
    let stop = cancel.child_token();
    let environments = Environments::new(plan, (handle, events, &stop));
    let began = Instant::now();
    let Exploration { seed, shard, most_pairs, most_findings, .. } = *exploration;
    let shared = Shared {
        queue: Mutex::new(Queue::new(seed, patterns, shard, first, most_pairs)),
        news: Condvar::new(),
        results,
        trials_of_a_finding,
        most_findings,
        began,
        events,
        stop: &stop,
        failed: AtomicBool::new(false),
        done: AtomicUsize::new(0),
    };
    let time = exploration.budget.min(WITHOUT_END);
    let timer = handle.spawn({
        let stop = stop.clone();
        async move {
            pause(time).await;
            stop.cancel();
        }
    });
    let lanes = u32::try_from(exploration.jobs.max(1)).unwrap_or(1);
    let outcomes: Vec<Result<(), Stopped>> = std::thread::scope(|scope| {
        let (shared, environments) = (&shared, &environments);
        let work = |lane| scope.spawn(move || shared.work(environments.lane(lane)));
        let running: Vec<_> = (1..=lanes).map(work).collect();
        let panicked = |_| Err(Stopped::Failed("an environment panicked".to_owned()));
        running.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
    });
    timer.abort();
    results.lock().took(began.elapsed());
    outcomes.into_iter().collect()
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock()
    }

    /// Carries out trials in one environment after another, as long as there are any.
    fn work(&self, mut lane: Lane<'_, '_>) -> Result<(), Stopped> {
        let outcome = loop {
            let Some(plan) = self.next(lane.has_standby()) else { break Ok(()) };
            let tried = AssertUnwindSafe(|| self.try_one(&mut lane, &plan));
            let outcome = catch_unwind(tried)
                .unwrap_or_else(|_| Err(format!("{plan}: the trial itself panicked").into()));
            self.news.notify_all();
            if let Err(why) = outcome {
                self.failed.store(true, Ordering::Relaxed);
                break Err(why);
            }
        };
        self.news.notify_all();
        lane.leave();
        outcome
    }

    fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.failed.load(Ordering::Relaxed)
    }

    /// The next plan; `None` if there is none any more.
    fn next(&self, has_standby: Option<bool>) -> Option<Plan> {
        let mut queue = self.lock();
        loop {
            if self.is_over() || self.results().findings.len() >= self.most_findings {
                return None;
            }
            match queue.next(has_standby) {
                Next::Plan(plan) => return Some(plan),
                Next::End => return None,
                Next::Wait => {}
            }
            let wait = self.news.wait_timeout(queue, Duration::from_millis(200));
            queue = wait.map_or_else(|poisoned| poisoned.into_inner().0, |(queue, _)| queue);
        }
    }

    fn try_one(&self, lane: &mut Lane<'_, '_>, plan: &Plan) -> Result<(), Stopped> {
        let began = Instant::now();
        let tried = self.tried_twice(lane, plan);
        if plan.faults.is_empty() {
            let points = tried.as_ref().map_or(&[][..], |tried| tried.points.as_slice());
            let (mut queue, mut results) = (self.lock(), self.results());
            if tried.as_ref().is_ok_and(|tried| tried.outcome == Outcome::Agrees) {
                results.plans += queue.recorded(&plan.scenario, points);
                results.points += points.len();
            } else {
                queue.not_recorded();
            }
        }
        let Tried { outcome, .. } = tried?;
        let finding = match &outcome {
            // Even if the time is over by now: this has been seen.
            Outcome::Diverges(broken) => Some(self.finding(lane, plan, broken.clone())?),
            _ if self.stop.is_cancelled() => return Ok(()),
            _ => None,
        };
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let (waiting, pairs) = {
            let queue = self.lock();
            (queue.waiting(), queue.pairs())
        };
        let mut news = finding.as_ref().map(shown);
        let findings = {
            let mut results = self.results();
            if finding.is_some() && results.findings.len() >= self.most_findings {
                // Another environment has found the last one in the meantime.
                return Ok(());
            }
            let is_new = results.add(Trialed::of(plan, &outcome, began.elapsed()), finding);
            results.note(waiting, pairs, self.began.elapsed());
            news = news.filter(|_| is_new);
            results.findings.len()
        };
        if findings >= self.most_findings {
            self.stop.cancel();
        }
        if let Some(news) = news {
            self.events.say(news);
        } else if done.is_multiple_of(50) {
            self.events.say(format!("  {done} trials, {waiting} left, {findings} findings"));
        }
        Ok(())
    }

    /// Carries out a plan; if the environment failed or the CCM did not start, once more in a new one.
    ///
    /// # Errors
    /// The CCM starts in neither: no other plan would show more.
    fn tried_twice(&self, lane: &mut Lane<'_, '_>, plan: &Plan) -> Result<Tried, Stopped> {
        let tried = lane.trial(plan)?;
        let (first, again) = match tried.outcome {
            Outcome::Error(_) | Outcome::NotStarted(_) if !self.stop.is_cancelled() => {
                tracing::debug!(%plan, outcome = ?tried.outcome, "tried again in a new environment");
                (tried.outcome, lane.trial(plan)?)
            }
            _ => return Ok(tried),
        };
        match (first, again.outcome) {
            (_, Outcome::NotStarted(why)) if !self.stop.is_cancelled() => Err(Stopped::NotStarted(why)),
            // The time was over before the second attempt could show the same.
            (Outcome::NotStarted(why), Outcome::NotStarted(_) | Outcome::Error(_))
                if self.stop.is_cancelled() && self.results().trials.is_empty() =>
            {
                Err(Stopped::NotStarted(why))
            }
            (_, outcome) => Ok(Tried { outcome, ..again }),
        }
    }

    /// Looks whether a plan always ends like this, and for a smaller one that does.
    fn finding(&self, lane: &mut Lane<'_, '_>, plan: &Plan, first: Broken) -> Result<Finding, String> {
        let finding = self.confirmed(lane, plan, first)?;
        let is_known = self.results().findings.iter().any(|known| known.resembles(&finding));
        if self.trials_of_a_finding == 1 || !finding.seen.is_stable() || is_known {
            return Ok(finding);
        }
        let mut least = finding.clone();
        let mut left = MOST_SMALLER;
        'smaller: while left > 0 {
            for candidate in smaller(&least.plan()).into_iter().take(left) {
                if self.is_over() {
                    break 'smaller;
                }
                left -= 1;
                let Outcome::Diverges(broken) = lane.trial(&candidate)?.outcome else { continue };
                let confirmed = self.confirmed(lane, &candidate, broken)?;
                if confirmed.seen.is_stable() && confirmed.resembles(&finding) {
                    least = confirmed;
                    continue 'smaller;
                }
            }
            break;
        }
        Ok(least)
    }

    /// Carries out a plan that has ended like this again, to see whether it always does.
    fn confirmed(&self, lane: &mut Lane<'_, '_>, plan: &Plan, first: Broken) -> Result<Finding, String> {
        let mut seen = Seen { times: 1, of: 1 };
        let mut least = first;
        while seen.of < self.trials_of_a_finding && !self.stop.is_cancelled() {
            let Tried { outcome, .. } = lane.trial(plan)?;
            if self.stop.is_cancelled() {
                break;
            }
            seen.of += 1;
            if let Outcome::Diverges(broken) = outcome {
                seen.times += 1;
                let step = least.step.max(broken.step);
                if broken.divergences.len() < least.divergences.len() {
                    least = broken;
                }
                least.step = step;
            }
        }
        Ok(Finding::new(plan, least, seen))
    }
}

fn shown(finding: &Finding) -> String {
    let Seen { times, of } = finding.seen;
    let mut text = format!("  found   {} ({times} of {of} times)", finding.summary);
    for difference in &finding.differences {
        text.push_str(&format!("\n          {difference}"));
    }
    text
}
