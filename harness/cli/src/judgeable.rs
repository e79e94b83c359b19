//! How many checks can be judged with the cloud of a profile. `plan` and `driver check` report the same number.

use harness_clouds::{Cloud, CloudSpec, Place, RunningCloud, StartError, start};
use harness_clusters::images::RunId;
use harness_clusters::reaper;
use harness_config::{Choice, CloudSource, Offer, Profile};
use harness_core::check::{Facility, chain};
use harness_core::files;
use harness_core::ledger::SkipReason;
use harness_core::output;
use harness_runner::{Planned, start_reaper};
use harness_session::RunDir;
use std::path::Path;
use std::sync::Arc;

/// The facilities of that cloud, and all facilities that a cluster can have.
pub(super) fn offer(profile: &Profile, cloud: &Cloud) -> Offer {
    let others = Facility::ALL.iter().copied().filter(|one| !Facility::OF_THE_CLOUD.contains(one));
    Offer {
        facilities: Some(others.chain(cloud.facilities()).collect()),
        cloud: Some(cloud.driver().to_owned()),
        ..Offer::declared(profile)
    }
}

/// The number of checks that can be judged, of those that apply and were not left out, as text.
pub(super) fn in_words(checks: &[Planned], driver: &str) -> String {
    let lacks = |one: &&Planned| matches!(&one.choice, Choice::Skip(SkipReason::NotObservable, _));
    let judged = checks.iter().filter(|one| one.choice == Choice::Selected).count();
    let all = judged + checks.iter().filter(lacks).count();
    format!(
        "with driver {driver} {judged} of {all} checks that apply can be judged, as far as the cloud goes"
    )
}

/// Starts a cloud for a moment, on this machine.
///
/// # Errors
/// It does not start, or does not answer; as text.
pub(super) fn with_cloud<T>(
    cloud: &CloudSource,
    used: impl AsyncFnOnce(&RunningCloud) -> Result<T, StartError>,
) -> Result<T, String> {
    start_reaper();
    if cloud.driver_image().is_some() {
        reaper::uses_engine();
    }
    let run = RunId::fresh();
    // With this folder, 'clean' finds the leftovers of a command that was killed.
    let dir = RunDir::create(run.as_str()).map_err(|error| chain(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| format!("cannot start the async runtime: {}", files::why(&error)))?;
    let outcome = runtime.block_on(while_it_runs(&run, cloud, dir.path(), used));
    let removed = dir.remove();
    let value = outcome.map_err(|error| chain(&error))?;
    removed.map_err(|error| chain(&error))?;
    Ok(value)
}

async fn while_it_runs<T>(
    run: &RunId,
    cloud: &CloudSource,
    folder: &Path,
    used: impl AsyncFnOnce(&RunningCloud) -> Result<T, StartError>,
) -> Result<T, StartError> {
    let on_message = Arc::new(|what: String| output::err(&what));
    let spec = CloudSpec {
        run,
        cloud,
        place: Place::LOOPBACK,
        replicas: &[],
        folder,
        on_message: &(on_message as _),
    };
    let running = start(spec).await?;
    let outcome = used(&running).await;
    running.stop().await?;
    outcome
}
