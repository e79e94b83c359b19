//! `controls`: proves that the checks bite. On one cluster, every MUST check must fail with no CCM at all, and each
//! mutant of the reference CCM must be caught by the checks named for it.

use super::arguments::ControlOptions;
use super::outcome::watch_signals;
use super::run::{prepare_output, refuse};
use crate::check::{Level, Sharing, chain};
use crate::config::{Choice, Keep, Offer, RunFile, RunPlan, Source, plan as plan_run, workspace, yaml};
use crate::cx::Suite;
use crate::ledger::{Entry, Outcome};
use crate::progress::Progress;
use crate::report::exit;
use crate::run::{Phases, Planned, plan_checks, run_one};
use crate::session::up::{Environment, Leave};
use crate::session::{RunDir, Session, SessionError, settle};
use serde::Deserialize;
use std::process::ExitCode;
use std::sync::Arc;
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
    let progress = Progress::on_stderr();
    let list = match read_controls(options) {
        Ok(list) => list,
        Err(why) => {
            progress.say(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let (Ok(()), Ok(runtime)) = (prepare_output(&with_mutants), Runtime::new()) else {
        progress.say(&format!(
            "error: {} cannot be written, or there is no runtime",
            with_mutants.output.display()
        ));
        return ExitCode::from(exit::ENVIRONMENT);
    };
    let cancel = CancellationToken::new();
    runtime.spawn(watch_signals(cancel.clone()));
    let (with_mutants, chosen) = runtime.block_on(settle(with_mutants));
    chosen.iter().for_each(|chosen| progress.say(chosen));
    let mut environment = Environment::new(Arc::new(with_mutants.clone()));
    let outcome = match runtime.block_on(environment.up(&progress, &cancel)) {
        Err(error) => Err(chain(&error)),
        Ok(first) => {
            let place = first.dir().path().to_owned();
            let state = first.state().clone();
            drop(first);
            let join = |plan: RunPlan| {
                runtime.block_on(Session::join(
                    Arc::new(plan),
                    RunDir::join(&place),
                    state.clone(),
                    cancel.clone(),
                ))
            };
            judge_all(
                suites,
                &list,
                options,
                with_mutants.clone(),
                with_nothing,
                &join,
                runtime.handle(),
                &progress,
            )
        }
    };
    let leave = if with_mutants.keep == Keep::Always { Leave::Everything } else { Leave::Nothing };
    if let Err(why) = runtime.block_on(environment.down(leave)) {
        progress.say(&format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
    }
    match outcome {
        Err(why) => {
            progress.say(&format!("error: {why}"));
            ExitCode::from(exit::ENVIRONMENT)
        }
        Ok(missed) => ExitCode::from(if missed == 0 { exit::CONFORMANT } else { exit::NOT_CONFORMANT }),
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

#[expect(clippy::too_many_arguments, reason = "one call site; a struct would only repeat the names")]
fn judge_all(
    suites: &'static [Suite],
    list: &[Control],
    options: &ControlOptions,
    with_mutants: RunPlan,
    with_nothing: RunPlan,
    join: &dyn Fn(RunPlan) -> Result<Session, SessionError>,
    handle: &Handle,
    progress: &Progress,
) -> Result<usize, String> {
    let mut verdicts = Vec::new();
    let everything = plan_checks(suites, &with_mutants, &Offer::declared(&with_mutants.profile.capabilities))
        .map_err(|problems| problems.to_string())?;
    if options.mutant.is_empty() {
        let session = join(with_nothing).map_err(|error| chain(&error))?;
        verdicts.push(judge(session, "no CCM", everything.clone(), handle)?);
        progress.say(&show(&verdicts[0]));
    }
    for control in list {
        if let Some(unknown) = control.checks.iter().find(|id| everything.iter().all(|p| p.check.id != **id))
        {
            return Err(format!("mutant {}: no check {unknown}", control.mutant));
        }
        let mut plan = with_mutants.clone();
        plan.profile.extra_arguments.push(format!("--mutant={}", control.mutant));
        let named =
            everything.iter().filter(|p| control.checks.iter().any(|id| id == p.check.id)).cloned().collect();
        let session = join(plan).map_err(|error| chain(&error))?;
        verdicts.push(judge(session, &control.mutant, named, handle)?);
        progress.say(&verdicts.last().map(show).unwrap_or_default());
    }
    let missed = verdicts.iter().filter(|v| !v.missed.is_empty()).count();
    progress.say(&format!("{} of {} controls caught", verdicts.len() - missed, verdicts.len()));
    Ok(missed)
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
