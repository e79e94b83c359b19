//! `plan`: what `run` would do, as far as that is known without a cluster.

use super::arguments::{PlanOptions, RepetitionOptions};
use super::judgeable::{in_words, offer, with_cloud};
use super::planning::planned;
use super::run::typed;
use super::versions;
use embedded_cluster::KubernetesVersion;
use harness_clusters::{InsideCluster, available_kind_image, facts};
use harness_components::component::COMPONENTS;
use harness_config::{
    BackendKind, Choice, DesiredCluster, Kubernetes, Offer, RunFile, RunPlan, declared_not_judged,
};
use harness_core::check::{Facility, chain};
use harness_core::files;
use harness_core::ledger::{SkipReason, upgrades_from};
use harness_core::output;
use harness_report::exit;
use harness_runner::{
    Forecast, Planned, about, certifies, in_force, judged, may_be_replaced, plan_checks, refuse, selected,
};
use harness_session::ccm::Manifests;
use harness_session::up::startable;
use harness_session::{expected_boot, load_manifests, settle, unfilled};
use harness_testkit::Suite;
use std::process::ExitCode;

/// Up to so many checks that are skipped for the same reason are listed; more are counted.
const FEW: usize = 5;

/// `ccm-conformance plan`. A driver is started for a moment, since only it knows its facilities. The exit code is that with
/// which `run` would refuse to start, or 0.
pub(super) fn plan(suites: &'static [Suite], options: &PlanOptions) -> ExitCode {
    let shared = &options.shared;
    let typed = match typed(shared) {
        Err(code) => return code,
        Ok(typed) => typed,
    };
    let versions = shared.kubernetes();
    if versions.len() < 2 {
        return plan_of(suites, options, typed, None, &mut Vec::new());
    }
    if let Some(why) = versions::needs_one(&[(options.repetition.repeat.is_some(), "--repeat")]) {
        return refused(&why, exit::USAGE);
    }
    let folders = match versions::folders(versions) {
        Ok(folders) => folders,
        Err(why) => return refused(&why, exit::USAGE),
    };
    let mut clusters = Vec::new();
    for (at, (version, folder)) in versions.iter().zip(&folders).enumerate() {
        output::out(&format!("{}Kubernetes {version}:\n", if at == 0 { "" } else { "\n" }));
        let mut typed = typed.clone();
        typed.cluster.kubernetes = Some(version.clone());
        let code = plan_of(suites, options, typed, Some(folder), &mut clusters);
        if code != ExitCode::SUCCESS {
            return code;
        }
    }
    if let Some(why) = versions::mixed(versions, &clusters) {
        output::err(&format!("\nwarning: {why}"));
    }
    ExitCode::SUCCESS
}

/// The plan of one run, whose results are in this folder of the output folder; its kind of cluster is added to `clusters`.
fn plan_of(
    suites: &'static [Suite],
    options: &PlanOptions,
    typed: RunFile,
    folder: Option<&String>,
    clusters: &mut Vec<BackendKind>,
) -> ExitCode {
    let mut plan = match planned(&options.shared.source(), typed) {
        Err(code) => return code,
        Ok(plan) => plan,
    };
    plan.output.extend(folder);
    let driver = (plan.profile.cloud.dialect().is_none())
        .then(|| with_cloud(&plan.profile.cloud, async |running| Ok(running.attach()?)));
    let known = driver.as_ref().and_then(|driver| driver.as_ref().ok());
    let manifests = match load_manifests(&plan) {
        Err(error) => return refused(&chain(&error), exit::USAGE),
        Ok(manifests) => manifests,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = format!("cannot start the async runtime: {}", files::why(&error));
            return refused(&why, exit::ENVIRONMENT);
        }
    };
    let (plan, chosen) = runtime.block_on(settle(plan));
    clusters.push(plan.cluster.backend());
    for why in manifests.iter().flat_map(|manifests| unfilled(&plan.profile, manifests)) {
        output::err(&format!("warning: {why}"));
    }
    let offer = known.map_or_else(|| Offer::declared(&plan.profile), |cloud| offer(&plan.profile, cloud));
    let checks = match plan_checks(suites, &plan, &on_its_cluster(offer, &plan)) {
        Err(problems) => return refuse(&problems),
        Ok(checks) => checks,
    };
    if let Some(code) = refused_by_run(suites, &plan, &checks) {
        return code;
    }
    let image = runtime.block_on(node_image(&plan)).transpose();
    if let Err(why) = &image {
        output::err(&format!("warning: {why}"));
    }
    let forecast = Forecast::of_plan(&plan, &checks);
    let mut text = subject(&plan, manifests.as_ref());
    text.push_str(&cluster(&plan, chosen.as_deref(), forecast.lanes, image.ok().flatten()));
    text.push_str(&settings(suites, &plan, &checks));
    text.push_str(&lines(&checks, options.all));
    let selected = checks.iter().filter(|one| one.choice == Choice::Selected).count();
    text.push_str(&format!("\n{selected} of {} checks would run", checks.len()));
    if selected > 0 {
        text.push_str(&format!(", in about {} once the cluster is up", about(forecast.all())));
        text.push_str(&repetition(&options.repetition));
    }
    text.push('\n');
    match &driver {
        None => {}
        Some(Ok(cloud)) => text.push_str(&format!("{}\n", in_words(&checks, cloud.driver()))),
        Some(Err(_)) => text.push_str("the driver did not start, so what it lacks is not known\n"),
    }
    output::out_wrapped(&text);
    if let Some(Err(why)) = &driver {
        return refused(why, exit::ENVIRONMENT);
    }
    ExitCode::from(if selected == 0 { exit::NOTHING_SELECTED } else { exit::CONFORMANT })
}

/// What follows a number of checks that would run several times, or not all.
fn repetition(options: &RepetitionOptions) -> String {
    let times = options.repeat.filter(|times| *times > 1).map(|times| format!("; {times} such runs"));
    let end = options.max_fail.map(|most| counted(most as usize, "failure"));
    let end = end.map(|failures| format!("; no further check starts after {failures}"));
    times.into_iter().chain(end).collect()
}

/// What is known of an environment, without the facilities that no cluster of its kind has.
fn on_its_cluster(offer: Offer, plan: &RunPlan) -> Offer {
    let of_its_kind = facts(plan.cluster.backend()).facilities;
    let all = offer.facilities.unwrap_or_else(|| Facility::ALL.iter().copied().collect());
    let possible = all.into_iter().filter(|one| !one.is_of_the_cluster() || of_its_kind.contains(one));
    Offer { facilities: Some(possible.collect()), ..offer }
}

/// Prints the error with which `run` would refuse to start, and returns its exit code; `None` if it would start.
fn refused_by_run(suites: &'static [Suite], plan: &RunPlan, checks: &[Planned]) -> Option<ExitCode> {
    if let Err(problems) = certifies(suites, plan, checks) {
        return Some(refuse(&problems));
    }
    if let Err(error) = startable(plan) {
        let code = if error.is_usage() { exit::USAGE } else { exit::ENVIRONMENT };
        return Some(refused(&chain(&error), code));
    }
    let folder = files::takes_files(&plan.output)
        .map_err(|error| error.to_string())
        .and_then(|()| may_be_replaced(&plan.output).map_err(|error| files::why(&error)));
    let why = folder.err()?;
    Some(refused(&format!("output folder {}: {why}", plan.output.display()), exit::USAGE))
}

fn refused(why: &str, code: u8) -> ExitCode {
    output::err(&format!("error: {why}"));
    ExitCode::from(code)
}

/// The node image of a run on kind, or why it would first have to pull one.
async fn node_image(plan: &RunPlan) -> Option<Result<String, String>> {
    let own = plan.cluster.desired().own().filter(|_| plan.cluster.backend() == BackendKind::Kind)?;
    Some(available_kind_image(&own.kubernetes).await.map_err(|error| chain(&error)))
}

/// What would be tested, in lines with labels.
fn subject(plan: &RunPlan, manifests: Option<&Manifests>) -> String {
    let profile = &plan.profile;
    let mut text = format!("profile    {} ({})\n", profile.name, profile.file.display());
    for component in COMPONENTS {
        let Some((label, what)) = component.shown(profile) else { continue };
        let program = plan.binary.as_ref().filter(|_| label == "image");
        let (label, what) =
            program.map_or((label, what), |program| ("program", program.display().to_string()));
        text.push_str(&format!("{label:<11}{what}\n"));
    }
    let old = upgrades_from(&plan.settings);
    old.iter().for_each(|old| text.push_str(&format!("upgrade    from {old}\n")));
    if let Some(manifests) = manifests {
        text.push_str(&format!(
            "workload   {}, {} objects\n",
            manifests.workload_key(),
            manifests.documents.len()
        ));
    }
    text.push_str(&format!("cloud      {}\n", profile.cloud));
    if let Some(version) = profile.framework.version() {
        text.push_str(&format!("framework  k8s.io/cloud-provider {version}\n"));
    }
    text
}

/// From this minor version of Kubernetes on, every MUST can be observed.
const OLDEST_WHOLE: u32 = 30;

/// The minor version in a text such as `1.36` or `of the node image kindest/node:v1.36.1`.
fn minor_of(version: &str) -> Option<u32> {
    let numbers = version.rsplit([':', ' ', 'v']).find(|part| part.starts_with("1."))?;
    numbers.split('.').nth(1)?.parse().ok()
}

/// The cluster, in lines with labels.
fn cluster(plan: &RunPlan, chosen: Option<&str>, lanes: usize, image: Option<String>) -> String {
    let mut text = match plan.cluster.desired() {
        DesiredCluster::Own(own) => {
            let (backend, topology) = (plan.cluster.backend(), own.topology.name());
            let version = match (&own.kubernetes, image) {
                (Kubernetes::Newest, Some(image)) => format!("of the node image {image}"),
                (Kubernetes::Newest, None) if backend == BackendKind::Embedded => {
                    KubernetesVersion::default().to_string().trim_start_matches('v').to_owned()
                }
                (wanted, _) => wanted.to_string(),
            };
            let mut text = format!("cluster    {backend}, topology {topology}, Kubernetes {version}\n");
            if minor_of(&version).is_some_and(|minor| minor < OLDEST_WHOLE) {
                text.push_str(&format!(
                    "           older than 1.{OLDEST_WHOLE}: some MUSTs cannot be observed, so the result is at most partial\n"
                ));
            }
            if let Some((_, why)) = chosen.and_then(|chosen| chosen.split_once(", as ")) {
                text.push_str(&format!("           chosen as {why}\n"));
            }
            text.push_str(&format!("           {} at the same time\n", counted(lanes, "cluster")));
            text
        }
        DesiredCluster::Absent => "cluster    none\n".to_owned(),
        DesiredCluster::Existing(existing) => {
            let file = existing
                .kubeconfig
                .as_ref()
                .map_or_else(|| default_cluster(plan.cluster.desired()), |f| f.display().to_string());
            format!("cluster    existing, {file}\n")
        }
    };
    if let Some(expected) = expected_boot(&plan.profile, plan.cluster.desired()) {
        text.push_str(&format!("boot       {}\n", expected.replace('\n', "\n           ")));
    }
    text
}

/// How the run would be made, in lines with labels.
fn settings(suites: &'static [Suite], plan: &RunPlan, checks: &[Planned]) -> String {
    let mut text = format!("timing     {}, {} checks side by side\n", plan.timing, plan.jobs);
    for relaxed in in_force(&plan.settings, checks).iter().filter(|one| one.relaxes()) {
        text.push_str(&format!("relaxed    {relaxed}\n"));
    }
    let unjudged = declared_not_judged(&plan.profile, &judged(suites));
    if !unjudged.is_empty() {
        text.push_str(&format!("unjudged   declared, and no check judges it: {}\n", unjudged.join(", ")));
    }
    text.push_str(&format!("output     {}\n\n", plan.output.display()));
    text
}

/// A line for each check that would run, and the reasons for which others would not.
fn lines(checks: &[Planned], all: bool) -> String {
    let mut text = String::new();
    let width = checks.iter().map(|one| one.check.id.as_str().len()).max().unwrap_or_default();
    for one in selected(checks) {
        let (id, level, title) = (one.check.id, one.level, one.check.claim.title);
        text.push_str(&format!("run   {id:<width$}  {level:<6}  {title}\n"));
    }
    let mut reasons: Vec<(&SkipReason, &str, Vec<&Planned>)> = Vec::new();
    for one in checks {
        let Choice::Skip(reason, detail) = &one.choice else { continue };
        match reasons.iter_mut().find(|(_, known, _)| known == detail) {
            Some((_, _, of)) => of.push(one),
            None => reasons.push((reason, detail, vec![one])),
        }
    }
    let mut are_counted = false;
    for (reason, detail, of) in reasons {
        if !all && (of.len() > FEW || *reason == SkipReason::Deselected) {
            are_counted = true;
            text.push_str(&format!("skip  {}: {detail}\n", counted(of.len(), "check")));
            continue;
        }
        for one in of {
            text.push_str(&format!("skip  {:<width$}  {:<6}  {detail}\n", one.check.id, one.level));
        }
    }
    if are_counted {
        text.push_str("      ('--all' lists each of them)\n");
    }
    text
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
