//! `driver`: the driver protocol and its own conformance test.

use super::arguments::{DriverCommand, DriverOptions};
use fake_cloud_driver::{DriverFacility, document};
use harness_clouds::{CloudSpec, Found, Place, StartError, check_running, facility_of, start};
use harness_clusters::images::RunId;
use harness_clusters::reaper;
use harness_config::{CloudSource, usual_arguments};
use harness_core::check::{Facility, chain};
use harness_core::output;
use harness_report::exit;
use harness_runner::start_reaper;
use harness_session::RunDir;
use harness_testkit::Suite;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

pub(super) fn driver(suites: &'static [Suite], command: &DriverCommand) -> ExitCode {
    match command {
        DriverCommand::Openapi => {
            output::out(&format!("{:#}\n", document()));
            ExitCode::SUCCESS
        }
        DriverCommand::Check(options) => check(suites, options),
    }
}

fn check(suites: &'static [Suite], options: &DriverOptions) -> ExitCode {
    let fail = |code: u8, why: &str| {
        output::err(&format!("error: {why}"));
        ExitCode::from(code)
    };
    let cloud = match (&options.url, &options.token_file, &options.image) {
        (Some(url), Some(file), _) if !file.is_file() => {
            return fail(exit::USAGE, &format!("{url}: there is no token file {}", file.display()));
        }
        (Some(url), Some(file), _) => CloudSource::DriverAt { url: url.clone(), token_file: file.clone() },
        (_, _, Some(image)) => {
            let given = options.arguments.clone();
            let arguments = if given.is_empty() { usual_arguments() } else { given };
            CloudSource::DriverImage { image: image.clone(), arguments }
        }
        _ => CloudSource::DriverCommand { line: options.command.clone(), folder: PathBuf::from(".") },
    };
    start_reaper();
    if cloud.driver_image().is_some() {
        reaper::uses_engine();
    }
    let run = RunId::fresh();
    // By this folder 'clean' finds what a check has left that was killed.
    let dir = match RunDir::create(run.as_str()) {
        Ok(dir) => dir,
        Err(error) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(exit::ENVIRONMENT, &format!("no runtime: {error}")),
    };
    let found = runtime.block_on(tried(&run, &cloud, dir.path()));
    let removed = dir.remove();
    let found = match (found, removed) {
        (Ok(found), Ok(())) => found,
        (Err(error), _) => return fail(exit::ENVIRONMENT, &chain(&error)),
        (_, Err(error)) => return fail(exit::ENVIRONMENT, &chain(&error)),
    };
    output::out(&as_text(suites, &found));
    let broken = found.tried.iter().any(|one| one.broken.is_some());
    if broken { ExitCode::from(exit::NOT_CONFORMANT) } else { ExitCode::SUCCESS }
}

async fn tried(run: &RunId, cloud: &CloudSource, folder: &Path) -> Result<Found, StartError> {
    let told = Arc::new(|what: String| output::err(&what));
    let spec = CloudSpec { run, cloud, place: Place::LOOPBACK, replicas: &[], folder, told: &(told as _) };
    let running = start(spec).await?;
    let found = check_running(&running).await;
    running.stop().await?;
    Ok(found?)
}

fn as_text(suites: &[Suite], found: &Found) -> String {
    let mut text = format!("driver {}\n", found.capabilities.name);
    for one in &found.tried {
        let _ = writeln!(text, "{one}");
    }
    let broken = found.tried.iter().filter(|one| one.broken.is_some()).count();
    let _ = writeln!(text, "{} of {} promises kept\n", found.tried.len() - broken, found.tried.len());
    let checks: Vec<_> = suites.iter().flat_map(Suite::checks).collect();
    let needing = |facility: Facility| -> Vec<String> {
        let needs = checks.iter().filter(|check| check.facilities.contains(facility));
        needs.map(|check| check.id.to_string()).collect()
    };
    let optional = DriverFacility::ALL.iter().filter(|one| facility_of(**one).is_some());
    let has = |one: &DriverFacility| found.capabilities.facilities.contains(one);
    let _ = writeln!(text, "{:<12}  there", "facility");
    let own = [(Facility::Machines, found.capabilities.machines), (Facility::Inventory, true)];
    let all = optional.filter_map(|one| Some((facility_of(*one)?, has(one))));
    let all: Vec<(Facility, bool)> = own.into_iter().chain(all).collect();
    for (facility, has) in &all {
        let (name, need) = (facility.to_string(), needing(*facility));
        let _ = match has {
            true => writeln!(text, "{name:<12}  yes, {} checks need it", need.len()),
            false => writeln!(
                text,
                "{name:<12}  no, not observable without it: {} checks ({})",
                need.len(),
                need.join(", ")
            ),
        };
    }
    let lacks: Vec<Facility> = all.iter().filter(|(_, has)| !has).map(|(facility, _)| *facility).collect();
    let judged =
        checks.iter().filter(|check| !lacks.iter().any(|one| check.facilities.contains(*one))).count();
    let _ = writeln!(
        text,
        "with this driver {judged} of {} checks can be judged, as far as the cloud goes",
        checks.len()
    );
    text
}
