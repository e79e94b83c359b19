//! `controls`: proves that the checks bite. Every MUST check must fail with no CCM at all, and each
//! mutant of the reference CCM must be caught by the checks named for it.

use super::arguments::ControlOptions;
use super::outcome::{interrupted_exit, watch_signals};
use super::run::{prepare_output, refuse};
use crate::check::{Level, Sharing, chain};
use crate::config::{
    BackendKind, Choice, Keep, Offer, RunFile, RunPlan, Source, plan as plan_run, workspace, yaml,
};
use crate::cx::Suite;
use crate::events::Events;
use crate::ledger::{Entry, Outcome};
use crate::progress::Terminal;
use crate::report::exit;
use crate::run::{Phases, Planned, plan_checks, run_one};
use crate::session::up::{Environment, Leave};
use crate::session::{RunDir, Session, settle};
use serde::Deserialize;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// How many embedded clusters judge at the same time: checks mostly wait.
const EMBEDDED_SIDE_BY_SIDE: usize = 4;

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
struct Verdict {
    subject: String,
    missed: Vec<String>,
    checks: usize,
    seconds: f64,
}

pub(super) fn controls(suites: &'static [Suite], options: &ControlOptions) -> ExitCode {
    let overrides = |profile: &str| RunFile { profile: Some(profile.to_owned()), ..options.overrides() };
    let (with_mutants, with_nothing) = match (
        plan_run(&Source::Defaults, overrides(MUTANTS)),
        plan_run(&Source::Defaults, overrides(crate::config::NULL_PROFILE)),
    ) {
        (Ok(with_mutants), Ok(with_nothing)) => (with_mutants, with_nothing),
        (Err(problems), _) | (_, Err(problems)) => return refuse(&problems),
    };
    let events = Terminal::alone();
    let list = match read_controls(options) {
        Ok(list) => list,
        Err(why) => {
            events.say(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let (Ok(()), Ok(runtime)) = (prepare_output(&with_mutants), Runtime::new()) else {
        events.say(&format!(
            "error: {} cannot be written, or there is no runtime",
            with_mutants.output.display()
        ));
        return ExitCode::from(exit::ENVIRONMENT);
    };
    let cancel = CancellationToken::new();
    runtime.spawn(watch_signals(cancel.clone()));
    let (with_mutants, chosen) = runtime.block_on(settle(with_mutants));
    chosen.iter().for_each(|chosen| events.say(chosen));
    let everything = plan_checks(suites, &with_mutants, &Offer::declared(&with_mutants.profile.capabilities));
    let work = everything
        .map_err(|problems| problems.to_string())
        .and_then(|all| work(&list, options, &with_mutants, &with_nothing, &all));
    let work = match work {
        Ok(work) => work,
        Err(why) => {
            events.say(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let began = Instant::now();
    let beside = match with_mutants.cluster.backend() {
        // A kind cluster takes most of a small machine; an embedded one next to nothing.
        BackendKind::Embedded => options.side_by_side.unwrap_or(EMBEDDED_SIDE_BY_SIDE),
        BackendKind::Auto | BackendKind::Kind | BackendKind::Existing => options.side_by_side.unwrap_or(1),
    };
    let hall = Hall {
        plan: &with_mutants,
        queue: Mutex::new(work.into()),
        handle: runtime.handle(),
        events: &events,
        cancel: &cancel,
    };
    let outcomes: Vec<Result<(usize, usize), String>> = std::thread::scope(|scope| {
        let benches: Vec<_> = (0..beside.max(1)).map(|_| scope.spawn(|| hall.judge())).collect();
        benches.into_iter().filter_map(|bench| bench.join().ok()).collect()
    });
    let (mut caught, mut judged) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok((yes, all)) => (caught, judged) = (caught + yes, judged + all),
            Err(why) => {
                events.say(&format!("error: {why}"));
                return ExitCode::from(exit::ENVIRONMENT);
            }
        }
    }
    events.say(&format!("{caught} of {judged} controls caught in {:.0} s", began.elapsed().as_secs_f64()));
    if cancel.is_cancelled() {
        return interrupted_exit();
    }
    ExitCode::from(if caught == judged { exit::CONFORMANT } else { exit::NOT_CONFORMANT })
}

/// A broken CCM, and the checks that must notice.
struct Work {
    subject: String,
    plan: RunPlan,
    checks: Vec<Planned>,
}

/// Everything to be judged, the longest first: no CCM at all, then each mutant.
fn work(
    list: &[Control],
    options: &ControlOptions,
    with_mutants: &RunPlan,
    with_nothing: &RunPlan,
    everything: &[Planned],
) -> Result<Vec<Work>, String> {
    let mut work = Vec::new();
    if options.mutant.is_empty() {
        let plan = RunPlan { output: with_mutants.output.join("no-ccm"), ..with_nothing.clone() };
        work.push(Work { subject: "no CCM".to_owned(), plan, checks: everything.to_vec() });
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
        let checks = everything.iter().filter(named).cloned().collect();
        work.push(Work { subject: control.mutant.clone(), plan, checks });
    }
    Ok(work)
}

/// What the environments that work side by side share.
struct Hall<'a> {
    plan: &'a RunPlan,
    queue: Mutex<VecDeque<Work>>,
    handle: &'a Handle,
    events: &'a Events,
    cancel: &'a CancellationToken,
}

impl Hall<'_> {
    /// Brings one environment up and judges in it as long as there is work; how many were caught, and how many judged.
    fn judge(&self) -> Result<(usize, usize), String> {
        let mut environment = Environment::new(Arc::new(self.plan.clone()));
        let outcome = self.judge_in(&mut environment);
        let leave = if self.plan.keep == Keep::Always { Leave::Everything } else { Leave::Nothing };
        if let Err(why) = self.handle.block_on(environment.down(leave)) {
            self.events.say(&format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
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
        let (place, state) = (first.dir().path().to_owned(), first.state().clone());
        drop(first);
        let (mut caught, mut judged) = (0, 0);
        while !self.cancel.is_cancelled() {
            let Some(Work { subject, plan, checks }) = self.queue().pop_front() else { break };
            let joining = Session::join(
                Arc::new(plan),
                RunDir::join(&place),
                state.clone(),
                self.events.clone(),
                self.cancel.clone(),
            );
            let session = self.handle.block_on(joining).map_err(|error| chain(&error))?;
            let verdict = judge(session, &subject, checks, self.handle)?;
            self.events.say(&show(&verdict));
            judged += 1;
            caught += usize::from(verdict.missed.is_empty());
        }
        Ok((caught, judged))
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Work>> {
        self.queue.lock().expect("no holder of this lock panics")
    }
}

fn read_controls(options: &ControlOptions) -> Result<Vec<Control>, String> {
    let path = workspace().join("fixtures/ccms/mutants/mutants.yaml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut list: Vec<Control> = yaml::from_str(&text, &path).map_err(|error| chain(&error))?;
    if let Some(unknown) = options.mutant.iter().find(|m| list.iter().all(|c| c.mutant != **m)) {
        return Err(format!("no mutant {unknown} in {}", path.display()));
    }
    list.retain(|control| options.mutant.is_empty() || options.mutant.contains(&control.mutant));
    Ok(list)
}

/// Runs the checks against one broken CCM; those that do not fail are missed.
fn judge(session: Session, subject: &str, checks: Vec<Planned>, handle: &Handle) -> Result<Verdict, String> {
    let began = Instant::now();
    let session = Arc::new(session);
    // Whatever the one before left, and whether or not it had come up.
    handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
    let musts: Vec<Planned> =
        checks.into_iter().filter(|p| p.choice == Choice::Selected && p.level == Level::Must).collect();
    let phases = Phases::of(musts.iter().map(|p| p.check.sharing));
    let entries: Vec<Entry> = std::thread::scope(|scope| {
        let running: Vec<_> = musts
            .iter()
            .map(|one| {
                let (session, phases) = (session.clone(), &phases);
                scope.spawn(move || {
                    let _turn = phases.wait_for(one.check.sharing);
                    handle.block_on(run_one(session, one))
                })
            })
            .collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    handle.block_on(session.forget_ccm()).map_err(|error| chain(&error))?;
    let mut missed: Vec<String> = entries.iter().filter_map(miss).collect();
    let lost = musts.len() - entries.len();
    if lost > 0 {
        missed.push(format!("{lost} checks ended without a result"));
    }
    Ok(Verdict {
        subject: subject.to_owned(),
        missed,
        checks: musts.len(),
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Why an entry is no catch: only a failure is one.
fn miss(entry: &Entry) -> Option<String> {
    match &entry.outcome {
        Outcome::Fail { .. } => None,
        Outcome::Skip { detail, .. } => Some(format!("{} was not judged: {detail}", entry.id)),
        Outcome::Pass => Some(format!("{} passes", entry.id)),
        Outcome::Error { message } => {
            let cold = if entry.sharing == Sharing::Cold { " (cold)" } else { "" };
            Some(format!(
                "{}{cold}: environment error: {}",
                entry.id,
                message.lines().next().unwrap_or_default()
            ))
        }
    }
}

fn show(verdict: &Verdict) -> String {
    let Verdict { subject, missed, checks, seconds } = verdict;
    if missed.is_empty() {
        format!("  caught  {subject:<10} by {checks} of {checks} checks in {seconds:.1} s")
    } else {
        format!("  MISSED  {subject:<10} {} of {checks} checks: {}", missed.len(), missed.join("; "))
    }
}
