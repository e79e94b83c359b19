//! Carries out trials in parallel environments until there is nothing left to try or the time is over.

use crate::divergence::Divergence;
use crate::finding::{Finding, Planned, Seen};
use crate::pattern::{PATTERNS, Pattern, plans};
use crate::point::Point;
use crate::results::{Results, SharedResults, Trialed};
use crate::scenario::Scenario;
use crate::trial::{Broken, Outcome, carry_out, record};
use harness_config::RunPlan;
use harness_core::check::chain;
use harness_core::events::Events;
use harness_session::Session;
use harness_session::up::{Environment, Leave, Prepared};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// In how many trials a finding must be seen to be stable.
const TRIALS_OF_A_FINDING: u32 = 3;
/// Longer than any exploration.
const WITHOUT_END: Duration = Duration::from_secs(7 * 86_400);

/// What is explored, and how long.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// The patterns; all if empty.
    pub patterns: Vec<Pattern>,
    /// No new trial begins after this time.
    pub budget: Duration,
    /// How many environments work at the same time.
    pub jobs: usize,
    /// Chooses the order of the plans, and so which of them are left out if the time is not enough.
    pub seed: u64,
    /// After how many findings the exploration ends.
    pub most_findings: usize,
}

/// The state that the parallel environments share.
struct Shared<'a> {
    prepared: Arc<Prepared>,
    exploration: &'a Exploration,
    patterns: Vec<Pattern>,
    queue: Mutex<Queue>,
    /// Wakes those that wait for work.
    news: Condvar,
    results: &'a SharedResults,
    /// In how many trials a finding is looked for.
    trials_of_a_finding: u32,
    began: Instant,
    handle: &'a Handle,
    events: &'a Events,
    cancel: &'a CancellationToken,
    ends: Instant,
    failed: AtomicBool,
    /// Whether an environment has shown how it is made.
    shows: AtomicBool,
    done: AtomicUsize,
}

/// Trials that wait for their turn.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Planned>,
    /// How many scenarios are being recorded: plans will follow.
    recording: usize,
}

/// Explores a CCM, and adds each trial and each finding to `results` as soon as it has ended.
///
/// # Errors
/// An environment could not be created, or a trial panicked.
pub fn explore(
    plan: &Arc<RunPlan>,
    exploration: &Exploration,
    results: &SharedResults,
    handle: &Handle,
    events: &Events,
    cancel: &CancellationToken,
) -> Result<(), String> {
    let recorded = exploration.scenarios.iter().cloned().map(Planned::Plain).collect();
    run(plan, exploration, (recorded, TRIALS_OF_A_FINDING), results, (handle, events, cancel))
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
) -> Result<(), String> {
    let times = TRIALS_OF_A_FINDING as usize;
    let exploration = Exploration {
        scenarios: Vec::new(),
        patterns: Vec::new(),
        budget: WITHOUT_END,
        jobs: times,
        seed: 0,
        most_findings: times,
    };
    let planned = std::iter::repeat_n(finding.planned(), times).collect();
    run(plan, &exploration, (planned, 1), results, (handle, events, cancel))
}

fn run(
    plan: &Arc<RunPlan>,
    exploration: &Exploration,
    (waiting, trials_of_a_finding): (VecDeque<Planned>, u32),
    results: &SharedResults,
    (handle, events, cancel): (&Handle, &Events, &CancellationToken),
) -> Result<(), String> {
    let patterns =
        if exploration.patterns.is_empty() { PATTERNS.to_vec() } else { exploration.patterns.clone() };
    let began = Instant::now();
    let shared = Shared {
        prepared: Prepared::new(plan.clone()),
        exploration,
        patterns,
        queue: Mutex::new(Queue { waiting, recording: 0 }),
        news: Condvar::new(),
        results,
        trials_of_a_finding,
        began,
        handle,
        events,
        cancel,
        ends: began + exploration.budget.min(WITHOUT_END),
        failed: AtomicBool::new(false),
        shows: AtomicBool::new(false),
        done: AtomicUsize::new(0),
    };
    let lanes = u32::try_from(exploration.jobs.max(1)).unwrap_or(1);
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let shared = &shared;
        let running: Vec<_> = (1..=lanes).map(|lane| scope.spawn(move || shared.work(lane))).collect();
        let panicked = |_| Err("an environment panicked".to_owned());
        running.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
    });
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
    fn work(&self, lane: u32) -> Result<(), String> {
        let mut current: Option<(Environment, Arc<Session>)> = None;
        let outcome = loop {
            let Some(planned) = self.next() else { break Ok(()) };
            let was_recording = matches!(planned, Planned::Plain(_));
            let tried = AssertUnwindSafe(|| self.try_one(&mut current, lane, &planned));
            let outcome =
                catch_unwind(tried).unwrap_or_else(|_| Err(format!("{planned}: the trial itself panicked")));
            if was_recording {
                self.lock().recording -= 1;
            }
            self.news.notify_all();
            if let Err(why) = outcome {
                self.failed.store(true, Ordering::Relaxed);
                break Err(why);
            }
        };
        self.news.notify_all();
        self.leave(current);
        outcome
    }

    /// The next trial; `None` if there is none any more.
    fn next(&self) -> Option<Planned> {
        let mut queue = self.lock();
        loop {
            let over = self.cancel.is_cancelled()
                || self.failed.load(Ordering::Relaxed)
                || Instant::now() >= self.ends
                || self.results().findings.len() >= self.exploration.most_findings;
            if over {
                return None;
            }
            if let Some(planned) = queue.waiting.pop_front() {
                queue.recording += usize::from(matches!(planned, Planned::Plain(_)));
                return Some(planned);
            }
            if queue.recording == 0 {
                return None;
            }
            let wait = self.news.wait_timeout(queue, Duration::from_millis(200));
            queue = wait.map_or_else(|poisoned| poisoned.into_inner().0, |(queue, _)| queue);
        }
    }

    fn try_one(
        &self,
        current: &mut Option<(Environment, Arc<Session>)>,
        lane: u32,
        planned: &Planned,
    ) -> Result<(), String> {
        let began = Instant::now();
        let (mut outcome, mut points) = self.trial(current, lane, planned)?;
        if let Outcome::Error(why) = &outcome
            && !self.cancel.is_cancelled()
        {
            tracing::debug!(plan = %planned, why, "tried again in a new environment");
            (outcome, points) = self.trial(current, lane, planned)?;
        }
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        if let (Planned::Plain(scenario), Outcome::Agrees) = (planned, &outcome) {
            self.add_plans(scenario, points);
        }
        let finding = match &outcome {
            Outcome::Diverges(broken) => Some(self.confirmed(current, lane, planned, broken.clone())?),
            _ => None,
        };
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(finding) = &finding {
            self.events.say(shown(finding));
        } else if done.is_multiple_of(50) {
            let (left, findings) = (self.lock().waiting.len(), self.results().findings.len());
            self.events.say(format!("  {done} trials, {left} left, {findings} findings"));
        }
        let (took, left) = (began.elapsed(), self.lock().waiting.len());
        let mut results = self.results();
        results.add(Trialed::of(planned, &outcome, took), finding);
        results.note(left, self.began.elapsed());
        drop(results);
        Ok(())
    }

    fn add_plans(&self, scenario: &Scenario, points: Vec<Point>) {
        let mut queue = self.lock();
        queue.waiting.extend(plans(scenario, &points, &self.patterns).into_iter().map(Planned::With));
        let seed = self.exploration.seed;
        let waiting = queue.waiting.make_contiguous();
        // Scenarios that are not recorded yet go first: their plans follow.
        waiting.sort_by_cached_key(|planned| (planned.pattern().is_some(), place(seed, planned)));
        self.results().points += points.len();
    }

    /// Carries out one trial. Environments that a trial has left in an unknown state are replaced.
    fn trial(
        &self,
        current: &mut Option<(Environment, Arc<Session>)>,
        lane: u32,
        planned: &Planned,
    ) -> Result<(Outcome, Vec<Point>), String> {
        if current.is_none() {
            let mut environment = Environment::new(self.prepared.clone(), lane);
            // The first one shows what is made; all others are made like it.
            let is_first = !self.shows.swap(true, Ordering::Relaxed);
            let events = if is_first { self.events.clone() } else { self.events.without_stages() };
            let up = self.handle.block_on(environment.up(&events, self.cancel));
            match up {
                Ok(session) => *current = Some((environment, session)),
                Err(error) => {
                    let why = chain(&error);
                    if let Err(left) = self.handle.block_on(environment.down(Leave::Nothing)) {
                        self.events.say(format!("left behind: {left}"));
                    }
                    if self.cancel.is_cancelled() {
                        return Ok((Outcome::Error(why), Vec::new()));
                    }
                    return Err(why);
                }
            }
        }
        let Some((_, session)) = current else { return Err("there is no environment".to_owned()) };
        let (outcome, points) = match planned {
            Planned::Plain(scenario) => {
                let tried = self.handle.block_on(record(session, scenario));
                (tried.outcome, tried.points)
            }
            Planned::With(plan) => (self.handle.block_on(carry_out(session, plan)), Vec::new()),
        };
        if matches!(outcome, Outcome::Diverges(_) | Outcome::Error(_)) {
            self.leave(current.take());
        }
        Ok((outcome, points))
    }

    /// Carries out a trial again, to see whether it always ends like this.
    fn confirmed(
        &self,
        current: &mut Option<(Environment, Arc<Session>)>,
        lane: u32,
        planned: &Planned,
        first: Broken,
    ) -> Result<Finding, String> {
        let mut seen = Seen { times: 1, of: 1 };
        let mut least: Vec<Divergence> = first.divergences;
        let mut step = first.step;
        while seen.of < self.trials_of_a_finding && !self.cancel.is_cancelled() {
            let (outcome, _) = self.trial(current, lane, planned)?;
            if self.cancel.is_cancelled() {
                break;
            }
            seen.of += 1;
            if let Outcome::Diverges(broken) = outcome {
                seen.times += 1;
                if broken.divergences.len() < least.len() {
                    least = broken.divergences;
                }
                step = step.max(broken.step);
            }
        }
        Ok(Finding::new(planned, step, least, seen))
    }

    fn leave(&self, current: Option<(Environment, Arc<Session>)>) {
        let Some((environment, session)) = current else { return };
        drop(session);
        if let Err(why) = self.handle.block_on(environment.down(Leave::Nothing)) {
            self.events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
        }
    }
}

/// The place of a plan in the order that the seed chooses.
fn place(seed: u64, planned: &Planned) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_be_bytes());
    hash.update(planned.to_string());
    hash.finalize().into()
}

fn shown(finding: &Finding) -> String {
    let Seen { times, of } = finding.seen;
    let mut text = format!("  found   {} ({times} of {of} times)", finding.summary);
    for difference in &finding.differences {
        text.push_str(&format!("\n          {difference}"));
    }
    text
}
