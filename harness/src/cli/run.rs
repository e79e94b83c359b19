//! `run` and `plan`.

use super::arguments::RunOptions;
use super::outcome::{Finish, finish, interrupted_exit};
use crate::config::{
    Candidate, Choice, ClusterPlan, Image, Offer, Problems, RunPlan, plan as plan_run, unknown_deviations,
};
use crate::cx::Suite;
use crate::ledger::{Ledger, Outcome, StageTime};
use crate::progress::Terminal;
use crate::report::{CHECKS_STAGE, exit};
use crate::run::{Planned, is_filtered_out, plan_checks, run_all};
use crate::session::up::{Environment, Leave};
use crate::session::{expected_boot, load_manifests, settle};
use libtest_mimic::Arguments;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// `ccm-conformance run`.
pub(super) fn run(suites: &'static [Suite], options: &RunOptions) -> ExitCode {
    match plan_run(&options.source(), options.overrides()) {
        Err(problems) => refuse(&problems),
        Ok(plan) => {
            let arguments = Arguments { test_threads: Some(plan.jobs as usize), ..Arguments::default() };
            let reproduce: Vec<String> = std::env::args().skip(1).collect();
            execute(suites, plan, &arguments, format!("ccm-conformance {}", reproduce.join(" ")))
        }
    }
}

/// `ccm-conformance plan`: everything that can be said without starting anything.
pub(super) fn plan(suites: &'static [Suite], options: &RunOptions) -> ExitCode {
    let plan = match plan_run(&options.source(), options.overrides()) {
        Err(problems) => return refuse(&problems),
        Ok(plan) => plan,
    };
    let planned = match plan_all(suites, &plan, &Offer::declared(&plan.profile.capabilities)) {
        Err(problems) => return refuse(&problems),
        Ok(planned) => planned,
    };
    let manifests = match load_manifests(&plan) {
        Err(error) => {
            say(&format!("error: {}", crate::check::chain(&error)));
            return ExitCode::from(exit::USAGE);
        }
        Ok(manifests) => manifests,
    };
    let mut text = format!("profile    {} ({})\n", plan.profile.name, plan.profile.file.display());
    let image = match &plan.profile.image {
        None => "none: nothing is deployed".to_owned(),
        Some(Image::Reference(reference)) => reference.clone(),
        Some(Image::Build(build)) => format!("built from package {}", build.package),
    };
    text.push_str(&format!("image      {image}\n"));
    if let Some(manifests) = &manifests {
        text.push_str(&format!(
            "workload   {}, {} objects\n",
            manifests.workload_key(),
            manifests.documents.len()
        ));
    }
    text.push_str(&format!("dialect    {}\n", plan.profile.dialect));
    match &plan.cluster {
        ClusterPlan::Auto(own) | ClusterPlan::Kind(own) | ClusterPlan::Embedded(own) => {
            text.push_str(&format!(
                "cluster    {}, topology {}, Kubernetes {}\n",
                plan.cluster.backend(),
                own.topology.name(),
                own.kubernetes
            ));
        }
        ClusterPlan::Existing(existing) => {
            let file = existing
                .kubeconfig
                .as_ref()
                .map_or("the default kubeconfig".into(), |f| f.display().to_string());
            text.push_str(&format!("cluster    existing, {file}\n"));
        }
    }
    if let Some(expected) = expected_boot(&plan) {
        text.push_str(&format!("boot       {}\n", expected.replace('\n', "\n           ")));
    }
    text.push_str(&format!("timing     {}, {} checks side by side\n", plan.timing, plan.jobs));
    text.push_str(&format!("output     {}\n\n", plan.output.display()));
    for one in crate::run::in_order(planned.clone()) {
        if one.choice == Choice::Selected {
            text.push_str(&format!("run   {:<25} {:<6} {}\n", one.check.id, one.level, one.check.title));
        }
    }
    for one in &planned {
        if let Choice::Skip(_, detail) = &one.choice {
            text.push_str(&format!("skip  {:<25} {:<6} {detail}\n", one.check.id, one.level));
        }
    }
    let selected = planned.iter().filter(|one| one.choice == Choice::Selected).count();
    text.push_str(&format!("\n{selected} of {} checks would run\n", planned.len()));
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(if selected == 0 { exit::NOTHING_SELECTED } else { exit::CONFORMANT })
}

/// Plans the checks; deviations the profile declares must name checks that exist.
pub(super) fn plan_all(
    suites: &'static [Suite],
    plan: &RunPlan,
    offer: &Offer,
) -> Result<Vec<Planned>, Problems> {
    let candidates: Vec<Candidate> =
        suites.iter().flat_map(|suite| suite.checks().map(|check| Candidate::of(suite, check))).collect();
    unknown_deviations(&plan.profile, &candidates)?;
    plan_checks(suites, plan, offer)
}

pub(super) fn refuse(problems: &Problems) -> ExitCode {
    say(&format!("error: {problems}"));
    ExitCode::from(exit::USAGE)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Brings the environment up, runs the checks, reports, takes it down.
pub(super) fn execute(
    suites: &'static [Suite],
    plan: RunPlan,
    arguments: &Arguments,
    reproduce: String,
) -> ExitCode {
    let began = Instant::now();
    let started = jiff::Timestamp::now().to_string();
    let offer = Offer::declared(&plan.profile.capabilities);
    let planned = match plan_all(suites, &plan, &offer) {
        Err(problems) => return refuse(&problems),
        Ok(planned) => planned,
    };
    let runs = |one: &&Planned| one.choice == Choice::Selected && !is_filtered_out(arguments, &one.name());
    if planned.iter().filter(runs).count() == 0 {
        say("nothing is selected: every check is deselected, or needs what the profile does not declare");
        return ExitCode::from(exit::NOTHING_SELECTED);
    }
    if let Err(error) = prepare_output(&plan) {
        say(&format!("error: output folder {}: {error}", plan.output.display()));
        return ExitCode::from(exit::USAGE);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: no runtime: {error}"));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let (plan, chosen) = runtime.block_on(settle(plan));
    let plan = Arc::new(plan);
    let cancel = CancellationToken::new();
    runtime.spawn(super::outcome::watch_signals(cancel.clone()));
    let events = Terminal::alone();
    let mut environment = Environment::new(plan.clone());
    events.say(&format!("run {}", environment.run_id().as_str()));
    chosen.iter().for_each(|chosen| events.say(&format!("  {chosen}")));
    if let Some(expected) = expected_boot(&plan) {
        events.say(&format!("  expected of the manifests: {}", expected.replace('\n', "\n    ")));
    }
    let up = runtime.block_on(environment.up(&events, &cancel));
    let mut ledger = Ledger { started, ..Ledger::default() };
    ledger.stages = environment.stages();
    match &up {
        Err(error) if error.is_usage() => {
            events.say(&format!("error: {}", crate::check::chain(error)));
            drop(up);
            if let Err(why) = runtime.block_on(environment.down(Leave::Nothing)) {
                events.say(&format!("left behind ('ccm-conformance clean' tries again):\n{why}"));
            }
            return ExitCode::from(exit::USAGE);
        }
        Err(error) => {
            let message = crate::check::chain(error);
            events.say(&format!("error: the environment did not come up: {message}"));
            ledger.entries = planned.iter().map(|one| one.entry(unjudged(&one.choice, &message))).collect();
            ledger.environment_error = Some(message);
            ledger.subject = super::outcome::subject(suites, &plan, None, &reproduce);
        }
        Ok(session) => {
            let offer = Offer {
                facilities: Some(session.facilities()),
                served_minor: Some(session.state().served_minor),
                ..offer
            };
            // The same selection again, now with what the cluster can show: it was sound before, so it is now.
            let planned = plan_checks(suites, &plan, &offer).unwrap_or(planned);
            let checks = Instant::now();
            let (entries, _) = run_all(session, &planned, arguments, runtime.handle());
            ledger.entries = entries;
            let took_ms = u64::try_from(checks.elapsed().as_millis()).unwrap_or(u64::MAX);
            ledger.stages.push(StageTime { stage: CHECKS_STAGE.to_owned(), took_ms });
            ledger.subject = super::outcome::subject(suites, &plan, Some(session), &reproduce);
            if let Err(error) = runtime.block_on(session.leave()) {
                events.say(&format!("left in the cluster: {}", crate::check::chain(&error)));
            }
        }
    }
    drop(up);
    ledger.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let code =
        finish(Finish { runtime: &runtime, plan: &plan, ledger: &ledger, environment, events: &events });
    if cancel.is_cancelled() { interrupted_exit() } else { code }
}

/// What becomes of a check when the environment did not come up.
pub(super) fn unjudged(choice: &Choice, message: &str) -> Outcome {
    match choice {
        Choice::Skip(reason, detail) => Outcome::Skip { reason: *reason, detail: detail.clone() },
        Choice::Selected => Outcome::Error { message: message.to_owned() },
    }
}

/// Makes the output folder and takes the evidence of an earlier run away, before anything is started.
pub(super) fn prepare_output(plan: &RunPlan) -> std::io::Result<()> {
    std::fs::create_dir_all(&plan.output)?;
    let evidence = plan.output.join("evidence");
    if evidence.is_dir() {
        std::fs::remove_dir_all(evidence)?;
    }
    let probe = tempfile::NamedTempFile::new_in(&plan.output)?;
    probe.close()
}
