//! The environments in which subjects are judged in parallel.

use super::outcome::Judged;
use super::work::{Expected, Work};
use harness_clouds::Settings;
use harness_config::{BackendKind, Keep, RunPlan};
use harness_core::check::chain;
use harness_core::events::{EVENTS_FILE, Events};
use harness_core::files;
use harness_core::probe::pause;
use harness_runner::{Quiet, begin_in, end_run, judge_subject, write_reports};
use harness_session::up::{Environment, Leave, Prepared};
use harness_session::{RunDir, RunState, Session};
use harness_testkit::Suite;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZero;
use std::path::Path;
use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// For how long a large subject keeps a core busy after its beginning: most of its checks are over then, and
/// the rest waits.
const BURST: Duration = Duration::from_secs(60);

/// The state that the parallel environments share.
pub(super) struct Benches<'a> {
    pub(super) suites: &'static [Suite],
    pub(super) plan: &'a RunPlan,
    pub(super) prepared: Arc<Prepared>,
    pub(super) queue: Mutex<VecDeque<Work>>,
    /// Each large subject that has just begun holds a share of it.
    pub(super) large: Arc<()>,
    /// Held for reading by each environment that judges, and for writing by one that judges alone.
    pub(super) machine: RwLock<()>,
    pub(super) handle: &'a Handle,
    pub(super) events: &'a Events,
    pub(super) cancel: &'a CancellationToken,
}

/// A share of the machine, or the whole machine.
#[expect(dead_code, reason = "held until it is dropped")]
enum Turn<'a> {
    Shared(RwLockReadGuard<'a, ()>),
    Alone(RwLockWriteGuard<'a, ()>),
}

impl Benches<'_> {
    /// Starts one environment and judges in it as long as there is work.
    pub(super) fn judge(&self, lane: u32) -> Result<Vec<Judged>, String> {
        let mut environment = Environment::new(self.prepared.clone(), lane);
        let outcome = self.judge_in(&mut environment);
        let leave = if self.plan.keep == Keep::Always { Leave::Everything } else { Leave::Nothing };
        if let Err(why) = self.handle.block_on(environment.down(leave)) {
            self.events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
        }
        if outcome.is_err() {
            // The others need not continue, because there will be no valid result.
            self.queue().clear();
        }
        outcome
    }

    fn judge_in(&self, environment: &mut Environment) -> Result<Vec<Judged>, String> {
        let mut judged = Vec::new();
        let mut first = None;
        while !self.cancel.is_cancelled() {
            let Some((work, large)) = self.next() else { break };
            if let Some(large) = large {
                self.handle.spawn(async move {
                    pause(BURST).await;
                    drop(large);
                });
            }
            if work.checks.is_empty() {
                judged.push(self.report(Judged::of(work.subject, &work.expected, &[], Duration::ZERO)));
                continue;
            }
            if !work.is_apart() && first.is_none() {
                let _others = self.machine.read().unwrap_or_else(PoisonError::into_inner);
                let up = environment.up(self.events, self.cancel);
                first = Some(self.handle.block_on(up).map_err(|error| chain(&error))?);
            }
            // Until its CCM is gone.
            let _turn = match work.alone {
                true => Turn::Alone(self.machine.write().unwrap_or_else(PoisonError::into_inner)),
                false => Turn::Shared(self.machine.read().unwrap_or_else(PoisonError::into_inner)),
            };
            if self.cancel.is_cancelled() {
                break;
            }
            let outcome = match &first {
                Some(first) if !work.is_apart() => self.judge_one(first, work.clone())?,
                _ => self.judge_apart(work.clone())?,
            };
            if self.cancel.is_cancelled() {
                // A subject that was not judged completely is neither noticed nor missed.
                break;
            }
            let outcome = Judged { part: work.part, ..outcome };
            if outcome.hindered && !work.again {
                self.events.say(format!("  again   {}: the environment was in the way", work.subject));
                let plan = RunPlan { output: work.plan.output.join("again"), ..work.plan };
                self.queue().push_back(Work { again: true, alone: true, plan, ..work });
                continue;
            }
            judged.push(self.report(outcome));
        }
        Ok(judged)
    }

    /// Judges one subject in a run with its own environment.
    fn judge_apart(&self, work: Work) -> Result<Judged, String> {
        let Work { subject, plan, expected, checks, cloud, jobs, .. } = work;
        let (began, output) = (Instant::now(), plan.output.clone());
        let kind = plan.cluster.backend();
        let events =
            begin_in(&output, Vec::new()).map_err(|e| format!("{}: {}", output.display(), files::why(&e)))?;
        let mut environment = Environment::new(Prepared::new(Arc::new(plan)), 0);
        let up = self.handle.block_on(environment.up(&events, self.cancel)).map_err(|error| chain(&error));
        let ended = up.and_then(|session| {
            if cloud != Settings::default() {
                let changed = self.handle.block_on(session.cloud().change_settings(&cloud));
                changed.map_err(|error| chain(&error))?;
            }
            let mut quiet = Quiet { wanted: |id: &str| checks.contains(id), at_once: jobs };
            judge_subject(self.suites, from_ref(&session), &repeated(&subject, kind), &mut quiet, self.handle)
                .map_err(|problems| problems.to_string())
        });
        self.handle.block_on(environment.down(Leave::Nothing))?;
        ended?;
        Ok(self.reported(subject, &expected, &checks, (&events, &output), began))
    }

    /// Writes the reports of a subject, and returns its result.
    fn reported(
        &self,
        subject: String,
        expected: &Expected,
        checks: &BTreeSet<String>,
        (events, output): (&Events, &Path),
        began: Instant,
    ) -> Judged {
        let ledger = end_run(events);
        write_reports(output, &ledger, &output.join(EVENTS_FILE), &Events::unrecorded(Vec::new()));
        let entries: Vec<_> = ledger.entries.iter().filter(|entry| checks.contains(&entry.id)).collect();
        let judged = Judged::of(subject, expected, &entries, began.elapsed());
        if judged.result.is_amiss() {
            self.events.say(format!("  page    {}", output.join("report.html").display()));
        }
        judged
    }

    /// Judges one CCM in a run of its own, in the environment of `first`.
    fn judge_one(&self, first: &Session, work: Work) -> Result<Judged, String> {
        let Work { subject, plan, expected, checks, cloud, jobs, .. } = work;
        let began = Instant::now();
        let events = begin_in(&plan.output, Vec::new())
            .map_err(|e| format!("{}: {}", plan.output.display(), files::why(&e)))?;
        let (output, kind) = (plan.output.clone(), plan.cluster.backend());
        let joining = Session::join(
            Arc::new(plan),
            RunDir::join(first.dir().path()),
            RunState { journal_from: first.journal().position(), ..first.state().clone() },
            events.clone(),
            self.cancel.clone(),
        );
        let session = Arc::new(self.handle.block_on(joining).map_err(|error| chain(&error))?);
        // Whatever the previous CCM has left, and whether or not it had started.
        self.handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
        let usual = self.handle.block_on(first.cloud().settings()).map_err(|error| chain(&error))?;
        self.handle.block_on(first.cloud().change_settings(&cloud)).map_err(|error| chain(&error))?;
        let mut quiet = Quiet { wanted: |id: &str| checks.contains(id), at_once: jobs };
        judge_subject(self.suites, from_ref(&session), &repeated(&subject, kind), &mut quiet, self.handle)
            .map_err(|problems| problems.to_string())?;
        self.handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
        // A faulty CCM leaves Nodes without labels or addresses that a correct one would have set; the next
        // CCM would consider them done.
        if expected != Expected::NoFailure {
            self.handle.block_on(session.renew_nodes()).map_err(|error| chain(&error))?;
        }
        self.handle.block_on(first.cloud().change_settings(&usual)).map_err(|error| chain(&error))?;
        Ok(self.reported(subject, &expected, &checks, (&events, &output), began))
    }

    /// Prints the result of a subject.
    fn report(&self, judged: Judged) -> Judged {
        self.events.say(judged.to_string());
        judged
    }

    /// The next subject to judge. One that is judged alone comes only when nothing else is left. Many checks
    /// at a time keep a machine busy, and on a machine that is too busy, correct CCMs look late. So no more
    /// large subjects begin at the same time than there are cores, as long as there are others to judge.
    fn next(&self) -> Option<(Work, Option<Arc<()>>)> {
        let mut queue = self.queue();
        let room = Arc::strong_count(&self.large) <= available_parallelism().map_or(1, NonZero::get);
        let shares = |work: &Work| !work.alone;
        let fits = |work: &Work| shares(work) && (room || !work.is_large());
        let at = queue.iter().position(fits).or_else(|| queue.iter().position(shares)).unwrap_or(0);
        let work = queue.remove(at)?;
        let large = work.is_large().then(|| self.large.clone());
        Some((work, large))
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Work>> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

/// The command that judges this subject again.
fn repeated(subject: &str, kind: BackendKind) -> String {
    let option = match subject.split('-').next() {
        Some("S") => "--variant",
        Some("A") => "--adversary",
        _ => "--mutant",
    };
    // What it does follows its id.
    let id = subject.split(' ').next().unwrap_or(subject);
    format!("{CONTROLS} --cluster {kind} {option} {id}")
}

/// The command of these runs; the page of a report knows it.
const CONTROLS: &str = "ccm-conformance controls";
