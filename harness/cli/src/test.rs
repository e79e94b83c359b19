//! `cargo test --test e2e` and `cargo nextest run --test e2e`.
//!
//! The first is one process: the same run as `ccm-conformance run`, with libtest's arguments. Nextest starts
//! one process per check: they share one environment, which a keeper starts and removes (see
//! [`super::keeper`]).

use super::keeper::{self, Shared};
use super::planning::{CONFIG_VARIABLE, planned};
use harness_config::{Choice, Offer, RunFile, RunPlan, Source, WantedCluster};
use harness_core::check::{Isolation, chain};
use harness_core::events::Events;
use harness_core::files;
use harness_core::ledger::Outcome;
use harness_core::output;
use harness_report::exit;
use harness_runner::{
    FinalReport, Hold, Libtest, Planned, Run, Watch, arranged, completion, execute, orderly, plan_checks,
    refuse, run_one, selected, shown, skipped_trials, watch_signals,
};
use harness_session::{RunDir, RunState, Session};
use harness_testkit::Suite;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(super) fn main(suites: &'static [Suite], package: &Path) -> ExitCode {
    // Cargo starts tests in their package's folder; paths are relative to where the user is, the workspace.
    let workspace = package.parent().unwrap_or(package);
    if let Err(error) = std::env::set_current_dir(workspace) {
        output::err(&format!("error: {}: {}", workspace.display(), files::why(&error)));
        return ExitCode::from(exit::USAGE);
    }
    let source =
        std::env::var_os(CONFIG_VARIABLE).map_or(Source::Defaults, |path| Source::File(PathBuf::from(path)));
    let mut arguments = Arguments::from_args();
    let jobs = arguments.test_threads.and_then(|threads| u32::try_from(threads).ok());
    let plan = match planned(&source, RunFile { jobs, ..RunFile::default() }) {
        Err(code) => return code,
        Ok(plan) => plan,
    };
    if let Some(place) = keeper::asked_to_keep() {
        return keeper::main(suites, plan, &place);
    }
    if arguments.list {
        return listing(suites, &plan, &arguments);
    }
    if let Some(shared) = Shared::of_nextest() {
        return one_of_many(suites, plan, &arguments, &shared);
    }
    arguments.test_threads = Some(plan.jobs as usize);
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let rest = if typed.is_empty() { String::new() } else { format!(" -- {}", typed.join(" ")) };
    let reproduce = format!("cargo test --test e2e{rest}");
    execute(
        Run { suites, plan, reproduce, watch: Watch::No, cancel: CancellationToken::new() },
        &mut Libtest { arguments },
    )
}

/// Lists names and ignored flags from the profile alone, without a cluster.
fn listing(suites: &'static [Suite], plan: &RunPlan<WantedCluster>, arguments: &Arguments) -> ExitCode {
    match plan_checks(suites, plan, &Offer::declared(&plan.profile)) {
        Err(problems) => refuse(&problems),
        Ok(planned) => {
            let mut trials: Vec<Trial> = selected(&planned)
                .iter()
                .map(|one| Trial::test(one.name(), || Err(Failed::from("listed, not run"))))
                .collect();
            trials.extend(skipped_trials(&planned));
            shown(arguments.clone(), trials, |_| {}).exit_code()
        }
    }
}

/// One process of nextest: joins the shared environment and runs its check.
fn one_of_many(
    suites: &'static [Suite],
    plan: RunPlan<WantedCluster>,
    arguments: &Arguments,
    shared: &Shared,
) -> ExitCode {
    let planned = match plan_checks(suites, &plan, &Offer::declared(&plan.profile)) {
        Err(problems) => return refuse(&problems),
        Ok(planned) => planned,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => {
            output::err(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let plan = Arc::new(plan);
    let cancel = CancellationToken::new();
    runtime.spawn(watch_signals(cancel.clone(), orderly(plan.cluster.desired()), FinalReport::default()));
    let mut trials: Vec<Trial> = selected(&planned)
        .iter()
        .map(|one| {
            let (one, plan, shared) = (one.clone(), plan.clone(), shared.clone());
            let (runtime, cancel) = (runtime.clone(), cancel.clone());
            Trial::ignorable_test(one.name(), move || {
                runtime.block_on(join_and_run(suites, plan, &shared, &one, cancel))
            })
        })
        .collect();
    trials.extend(skipped_trials(&planned));
    shown(arguments.clone(), trials, |_| {}).exit_code()
}

async fn join_and_run(
    suites: &'static [Suite],
    plan: Arc<RunPlan<WantedCluster>>,
    shared: &Shared,
    one: &Planned,
    cancel: CancellationToken,
) -> Result<Completion, Failed> {
    let kept =
        shared.environment().await.map_err(|why| format!("{} environment error\n{why}", one.check.id))?;
    let events = Events::join(&kept.events, kept.began)
        .map_err(|error| format!("events {}: {error}", kept.events.display()))?;
    // Only now is it decided which checks the cluster cannot show, and therefore which check runs in which lane.
    let read = |lane: usize| -> Result<(RunDir, RunState), String> {
        let place = kept.lanes.get(lane).ok_or("the run has no lane")?;
        let dir = RunDir::join(place);
        let state = dir.read("state.json").map_err(|error| chain(&error))?;
        Ok((dir, state.ok_or_else(|| format!("no state of the run in {}", place.display()))?))
    };
    let join = async |lane: usize| {
        let (dir, state) = read(lane)?;
        // The keeper has decided which backend it is.
        let cluster = plan.cluster.clone().settled(state.cluster.backend);
        let plan = Arc::new(plan.as_ref().clone().on(cluster));
        let joined = Session::join(plan, dir, state, events.clone(), cancel.clone()).await;
        joined.map_err(|error| chain(&error))
    };
    let session = join(0).await?;
    let offer = session.offer();
    let again = plan_checks(suites, &plan, &offer).map_err(|problems| problems.to_string())?;
    let now = again.iter().find(|p| p.check.id == one.check.id).unwrap_or(one).clone();
    if let Choice::Skip(reason, detail) = &now.choice {
        return completion(&now.entry(Outcome::Skip { reason: *reason, detail: detail.clone() }));
    }
    let (chosen, workers) = (selected(&again), plan.profile.workers);
    let arranged = arranged(&chosen, kept.lanes.len(), workers, session.plan().cluster.backend());
    let lanes = arranged.fixed_lanes(kept.lanes.len());
    let step =
        chosen.iter().zip(&arranged.of).find(|(p, _)| p.check.id == now.check.id).map(|(_, step)| *step);
    if now.check.isolation == Isolation::AfterTheRun {
        return Ok(Completion::ignored_with("judged when every other check has ended; the report has it"));
    }
    let session = match step.map(|step| lanes[step]) {
        Some(lane) if lane > 0 => join(lane).await?,
        _ => session,
    };
    let hold = Hold::in_any_order(now.check, workers);
    completion(&run_one(&[], Arc::new(session), &now, hold).await)
}
