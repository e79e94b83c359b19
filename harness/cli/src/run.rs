//! `run` and `plan`.

use super::arguments::{PlanOptions, RunOptions};
use super::compare::read;
use super::judgeable::{in_words, offer, with_cloud};
use super::planning::planned;
use super::repeat::repeat;
use super::sonobuoy;
use harness_clusters::InsideCluster;
use harness_components::component::COMPONENTS;
use harness_config::{Choice, DesiredCluster, Offer, RunFile, declared_not_judged};
use harness_core::files;
use harness_core::ledger::Outcome;
use harness_core::output;
use harness_report::exit;
use harness_runner::{Forecast, Run, about, execute, in_force, judged, plan_checks, refuse, selected};
use harness_session::up::startable;
use harness_session::{expected_boot, load_manifests, settle, unfilled};
use harness_testkit::Suite;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// `ccm-conformance run`.
pub(super) fn run(suites: &'static [Suite], options: &RunOptions) -> ExitCode {
    if let Some(folder) = &options.sonobuoy_results {
        return sonobuoy::run(folder);
    }
    let asked = &options.plan;
    match typed(asked).and_then(|typed| planned(&asked.source(), typed)) {
        Err(code) => code,
        Ok(plan) => {
            let mut shown = options.shown(plan.jobs);
            let typed: Vec<String> = std::env::args().skip(1).collect();
            let quoted =
                shlex::try_join(typed.iter().map(String::as_str)).unwrap_or_else(|_| typed.join(" "));
            let reproduce = format!("ccm-conformance {quoted}");
            if let Some(times) = options.repeat {
                return repeat(suites, &plan, &reproduce, shown, times);
            }
            let (watch, cancel) = (options.watch, CancellationToken::new());
            let run = Run { suites, plan, reproduce, watch, cancel };
            execute(run, &mut shown)
        }
    }
}

/// What was typed, with the checks that an earlier report names.
fn typed(options: &PlanOptions) -> Result<RunFile, ExitCode> {
    let mut typed = options.overrides();
    let Some(report) = &options.failed_from else { return Ok(typed) };
    let ledger = read(report).map_err(|why| {
        say(&format!("error: {why}"));
        ExitCode::from(exit::USAGE)
    })?;
    let wanted = ledger.all().filter(|entry| !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. }));
    let ids: Vec<String> = wanted.map(|entry| entry.id.clone()).collect();
    if ids.is_empty() {
        say(&format!("{}: nothing in it failed, was blocked or met an error", report.display()));
        return Err(ExitCode::from(exit::NOTHING_SELECTED));
    }
    typed.select.only = Some(ids);
    Ok(typed)
}

/// `ccm-conformance plan`: everything that can be said without a cluster. A driver is started, as only it knows what it has.
pub(super) fn plan(suites: &'static [Suite], options: &PlanOptions) -> ExitCode {
    let plan = match typed(options).and_then(|typed| planned(&options.source(), typed)) {
        Err(code) => return code,
        Ok(plan) => plan,
    };
    let driver = (plan.profile.cloud.dialect().is_none())
        .then(|| with_cloud(&plan.profile.cloud, async |running| Ok(running.attach()?)));
    let known = driver.as_ref().and_then(|driver| driver.as_ref().ok());
    let offer = known.map_or_else(|| Offer::declared(&plan.profile), |cloud| offer(&plan.profile, cloud));
    let checks = match plan_checks(suites, &plan, &offer) {
        Err(problems) => return refuse(&problems),
        Ok(checks) => checks,
    };
    let manifests = match load_manifests(&plan) {
        Err(error) => {
            say(&format!("error: {}", harness_core::check::chain(&error)));
            return ExitCode::from(exit::USAGE);
        }
        Ok(manifests) => manifests,
    };
    let (plan, chosen) = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(settle(plan)),
        Err(error) => {
            say(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    for why in manifests.iter().flat_map(|manifests| unfilled(&plan.profile, manifests)) {
        say(&format!("warning: {why}"));
    }
    if let Err(error) = startable(&plan) {
        say(&format!("warning: 'run' refuses this: {}", harness_core::check::chain(&error)));
    }
    let forecast = Forecast::of_plan(&plan, &checks);
    let mut text = format!("profile    {} ({})\n", plan.profile.name, plan.profile.file.display());
    for (label, what) in COMPONENTS.iter().filter_map(|component| component.shown(&plan.profile)) {
        text.push_str(&format!("{label:<11}{what}\n"));
    }
    if let Some(manifests) = &manifests {
        text.push_str(&format!(
            "workload   {}, {} objects\n",
            manifests.workload_key(),
            manifests.documents.len()
        ));
    }
    text.push_str(&format!("cloud      {}\n", plan.profile.cloud));
    match plan.cluster.desired() {
        DesiredCluster::Own(own) => {
            text.push_str(&format!(
                "cluster    {}, topology {}, Kubernetes {}\n",
                plan.cluster.backend(),
                own.topology.name(),
                own.kubernetes
            ));
            if let Some(why) = chosen.as_deref().and_then(|chosen| chosen.split_once(", as ")) {
                text.push_str(&format!("           chosen as {}\n", why.1));
            }
            text.push_str(&format!("           {} at the same time\n", counted(forecast.lanes, "cluster")));
        }
        DesiredCluster::Absent => text.push_str("cluster    none\n"),
        DesiredCluster::Existing(existing) => {
            let file = existing
                .kubeconfig
                .as_ref()
                .map_or_else(|| default_cluster(plan.cluster.desired()), |f| f.display().to_string());
            text.push_str(&format!("cluster    existing, {file}\n"));
        }
    }
    if let Some(expected) = expected_boot(&plan.profile, plan.cluster.desired()) {
        text.push_str(&format!("boot       {}\n", expected.replace('\n', "\n           ")));
    }
    text.push_str(&format!("timing     {}, {} checks side by side\n", plan.timing, plan.jobs));
    for relaxed in in_force(&plan.settings, &checks).iter().filter(|one| one.relaxes()) {
        text.push_str(&format!("relaxed    {relaxed}\n"));
    }
    let unjudged = declared_not_judged(&plan.profile, &judged(suites));
    if !unjudged.is_empty() {
        text.push_str(&format!("unjudged   declared, and no check judges it: {}\n", unjudged.join(", ")));
    }
    text.push_str(&format!("output     {}\n\n", plan.output.display()));
    let width = checks.iter().map(|one| one.check.id.as_str().len()).max().unwrap_or_default();
    for one in selected(&checks) {
        text.push_str(&format!(
            "run   {:<width$}  {:<6}  {}\n",
            one.check.id, one.level, one.check.claim.title
        ));
    }
    for one in &checks {
        if let Choice::Skip(_, detail) = &one.choice {
            text.push_str(&format!("skip  {:<width$}  {:<6}  {detail}\n", one.check.id, one.level));
        }
    }
    let selected = checks.iter().filter(|one| one.choice == Choice::Selected).count();
    text.push_str(&format!("\n{selected} of {} checks would run", checks.len()));
    if selected > 0 {
        text.push_str(&format!(", in about {} once the cluster is up", about(forecast.all())));
    }
    text.push('\n');
    match &driver {
        None => {}
        Some(Ok(cloud)) => text.push_str(&format!("{}\n", in_words(&checks, cloud.driver()))),
        Some(Err(_)) => text.push_str("the driver did not start, so what it lacks is not known\n"),
    }
    output::out_wrapped(&text);
    if let Some(Err(why)) = &driver {
        say(&format!("error: {why}"));
        return ExitCode::from(exit::ENVIRONMENT);
    }
    ExitCode::from(if selected == 0 { exit::NOTHING_SELECTED } else { exit::CONFORMANT })
}

/// The cluster that is used if none is named.
fn default_cluster(desired: &DesiredCluster) -> String {
    match InsideCluster::of(desired) {
        Some(inside) => format!("that of this Pod, in namespace {}", inside.namespace),
        None => "the default kubeconfig".to_owned(),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn say(line: &str) {
    output::err(line);
}
