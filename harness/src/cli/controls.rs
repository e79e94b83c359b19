//! `controls`: proves that the checks bite. Every MUST check must fail with no CCM at all, and each
//! mutant of the reference CCM must be caught by the checks named for it.

use super::arguments::ControlOptions;
use super::given::planned;
use crate::check::{Level, chain};
use crate::cluster::facts;
use crate::config::{Choice, Keep, Offer, RunFile, RunPlan, Source, yaml};
use crate::cx::Suite;
use crate::events::{EVENTS_FILE, Events};
use crate::files;
use crate::ledger::{Entry, Outcome};
use crate::report::exit;
use crate::run::{
    INTERRUPTED, Planned, Quiet, end_run, judge_subject, open, plan_checks, refuse, watch_signals,
    write_reports,
};
use crate::session::up::{Environment, Leave, Prepared};
use crate::session::{RunDir, Session, settle};
use serde::Deserialize;
use std::collections::{BTreeSet, VecDeque};
use std::process::ExitCode;
use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// The profile whose image has the mutants compiled in.
const MUTANTS: &str = "mutants";

/// One line of `mutants.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Control {
    mutant: String,
    checks: Vec<String>,
}

/// What became of one control.
struct Judged {
    subject: String,
    missed: Vec<String>,
    checks: usize,
    seconds: f64,
}

pub(super) fn controls(suites: &'static [Suite], options: &ControlOptions) -> ExitCode {
    let overrides = |profile: &str| RunFile { profile: Some(profile.to_owned()), ..options.overrides() };
    let (with_mutants, with_nothing) = match (
        planned(&Source::Defaults, overrides(MUTANTS)),
        planned(&Source::Defaults, overrides(crate::config::NULL_PROFILE)),
    ) {
        (Ok(with_mutants), Ok(with_nothing)) => (with_mutants, with_nothing),
        (Err(code), _) | (_, Err(code)) => return code,
    };
    let everything = match plan_checks(suites, &with_mutants, &Offer::declared(&with_mutants.profile)) {
        Ok(everything) => everything,
        Err(problems) => return refuse(&problems),
    };
    let (events, runtime) = match (open(&with_mutants), Runtime::new()) {
        (Ok(events), Ok(runtime)) => (events, runtime),
        (opened, started) => {
            let why = opened.err().or(started.err()).map(|error| error.to_string()).unwrap_or_default();
            let events = crate::progress::Terminal::alone();
            events.say(format!("error: {} or a runtime: {why}", with_mutants.output.display()));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let cancel = CancellationToken::new();
    runtime.spawn(watch_signals(cancel.clone()));
    let (with_mutants, chosen) = runtime.block_on(settle(with_mutants));
    let with_nothing = with_nothing.on(with_mutants.cluster.clone());
    chosen.iter().for_each(|chosen| events.say(chosen));
    let list = read_controls(options);
    let work = match list.and_then(|list| work(&list, options, &with_mutants, &with_nothing, &everything)) {
        Ok(work) => work,
        Err(why) => {
            events.say(format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let began = Instant::now();
    let usual = facts(with_mutants.cluster.backend()).side_by_side;
    let beside = options.side_by_side.unwrap_or(usual).max(1);
    let benches = Benches {
        suites,
        plan: &with_mutants,
        prepared: Prepared::new(Arc::new(with_mutants.clone())),
        queue: Mutex::new(work.into()),
        handle: runtime.handle(),
        events: &events,
        cancel: &cancel,
    };
    let outcomes: Vec<Result<(usize, usize), String>> = std::thread::scope(|scope| {
        let running: Vec<_> = (1..)
            .take(beside)
            .map(|lane| {
                let benches = &benches;
                scope.spawn(move || benches.judge(lane))
            })
            .collect();
        running.into_iter().filter_map(|bench| bench.join().ok()).collect()
    });
    let (mut caught, mut judged) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok((yes, all)) => (caught, judged) = (caught + yes, judged + all),
            Err(why) => {
                events.say(format!("error: {why}"));
                return ExitCode::from(exit::ENVIRONMENT);
            }
        }
    }
    events.say(format!("{caught} of {judged} controls caught in {:.0} s", began.elapsed().as_secs_f64()));
    if cancel.is_cancelled() {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(if caught == judged { exit::CONFORMANT } else { exit::NOT_CONFORMANT })
}

/// A broken CCM, and the checks that must notice.
struct Work {
    subject: String,
    plan: RunPlan,
    checks: BTreeSet<String>,
}

/// Everything to be judged, the longest first: no CCM at all, then each mutant.
fn work(
    list: &[Control],
    options: &ControlOptions,
    with_mutants: &RunPlan,
    with_nothing: &RunPlan,
    everything: &[Planned],
) -> Result<Vec<Work>, String> {
    let binding = |p: &&Planned| p.choice == Choice::Selected && p.level == Level::Must;
    let musts: BTreeSet<String> = everything.iter().filter(binding).map(|p| p.check.id.to_string()).collect();
    let mut work = Vec::new();
    if options.mutant.is_empty() {
        let plan = RunPlan { output: with_mutants.output.join("no-ccm"), ..with_nothing.clone() };
        work.push(Work { subject: "no CCM".to_owned(), plan, checks: musts.clone() });
    }
    for control in list {
        if let Some(unknown) =
            control.checks.iter().find(|id| !everything.iter().any(|p| p.check.id.is_named(id)))
        {
            return Err(format!("mutant {}: no check {unknown}", control.mutant));
        }
        let mut plan = with_mutants.clone();
        plan.profile.extra_arguments.push(format!("--mutant={}", control.mutant));
        plan.output = plan.output.join(&control.mutant);
        let named = |p: &&Planned| control.checks.iter().any(|id| p.check.id.is_named(id));
        let named = everything.iter().filter(binding).filter(named).map(|p| p.check.id.to_string());
        let checks = named.collect();
        work.push(Work { subject: control.mutant.clone(), plan, checks });
    }
    Ok(work)
}

/// What the environments that work side by side share.
struct Benches<'a> {
    suites: &'static [Suite],
    plan: &'a RunPlan,
    prepared: Arc<Prepared>,
    queue: Mutex<VecDeque<Work>>,
    handle: &'a Handle,
    events: &'a Events,
    cancel: &'a CancellationToken,
}

impl Benches<'_> {
    /// Brings one environment up and judges in it as long as there is work; how many were caught, and how many judged.
    fn judge(&self, lane: u32) -> Result<(usize, usize), String> {
        let mut environment = Environment::new(self.prepared.clone(), lane);
        let outcome = self.judge_in(&mut environment);
        let leave = if self.plan.keep == Keep::Always { Leave::Everything } else { Leave::Nothing };
        if let Err(why) = self.handle.block_on(environment.down(leave)) {
            self.events.say(format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
        }
        if outcome.is_err() {
            // The others need not go on for a result that is none.
            self.queue().clear();
        }
        outcome
    }

    fn judge_in(&self, environment: &mut Environment) -> Result<(usize, usize), String> {
        if self.queue().is_empty() {
            return Ok((0, 0));
        }
        let up = environment.up(self.events, self.cancel);
        let first = self.handle.block_on(up).map_err(|error| chain(&error))?;
        let (mut caught, mut judged) = (0, 0);
        while !self.cancel.is_cancelled() {
            let Some(work) = self.queue().pop_front() else { break };
            let verdict = self.judge_one(&first, work)?;
            self.events.say(show(&verdict));
            judged += 1;
            caught += usize::from(verdict.missed.is_empty());
        }
        Ok((caught, judged))
    }

    /// Judges one broken CCM as a run of its own in the environment of `first`; checks that do not fail are missed.
    fn judge_one(&self, first: &Session, work: Work) -> Result<Judged, String> {
        let Work { subject, plan, checks } = work;
        let began = Instant::now();
        std::fs::create_dir_all(&plan.output).map_err(|e| format!("{}: {e}", plan.output.display()))?;
        let file = plan.output.join(EVENTS_FILE);
        let events =
            Events::begin(&file, Vec::new()).map_err(|error| format!("{}: {error}", file.display()))?;
        let output = plan.output.clone();
        let joining = Session::join(
            Arc::new(plan),
            RunDir::join(first.dir().path()),
            first.state().clone(),
            events.clone(),
            self.cancel.clone(),
        );
        let session = Arc::new(self.handle.block_on(joining).map_err(|error| chain(&error))?);
        // Whatever the one before left, and whether or not it had come up.
        self.handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
        let mut quiet = Quiet { wanted: |id: &str| checks.contains(id) };
        judge_subject(self.suites, from_ref(&session), "ccm-conformance controls", &mut quiet, self.handle)
            .map_err(|problems| problems.to_string())?;
        self.handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
        let ledger = end_run(&events);
        write_reports(&output, &ledger, &Events::unrecorded(Vec::new()));
        let judged = ledger.entries.iter().filter(|entry| checks.contains(&entry.id));
        let missed = judged.filter_map(miss).collect();
        Ok(Judged { subject, missed, checks: checks.len(), seconds: began.elapsed().as_secs_f64() })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Work>> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

fn read_controls(options: &ControlOptions) -> Result<Vec<Control>, String> {
    let path = files::built_in("mutants/mutants.yaml");
    let text = files::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut list: Vec<Control> = yaml::from_str(&text, &path).map_err(|error| chain(&error))?;
    if let Some(unknown) = options.mutant.iter().find(|m| list.iter().all(|c| c.mutant != **m)) {
        return Err(format!("no mutant {unknown} in {}", path.display()));
    }
    list.retain(|control| options.mutant.is_empty() || options.mutant.contains(&control.mutant));
    Ok(list)
}

/// Why an entry is no catch: only a failure is one.
fn miss(entry: &Entry) -> Option<String> {
    match &entry.outcome {
        Outcome::Fail { .. } => None,
        Outcome::Skip { detail, .. } => Some(format!("{} was not judged: {detail}", entry.id)),
        Outcome::Pass => Some(format!("{} passes", entry.id)),
        Outcome::Blocked { by, .. } => Some(format!("{} was blocked by {by}", entry.id)),
        Outcome::Error { message } => {
            let first = message.lines().next().unwrap_or_default();
            Some(format!("{}: environment error: {first}", entry.id))
        }
    }
}

fn show(verdict: &Judged) -> String {
    let Judged { subject, missed, checks, seconds } = verdict;
    if missed.is_empty() {
        format!("  caught  {subject:<10} by {checks} of {checks} checks in {seconds:.1} s")
    } else {
        format!("  MISSED  {subject:<10} {} of {checks} checks: {}", missed.len(), missed.join("; "))
    }
}
