//! The table of drivers, and how one is started.

mod at_url;
mod command;
mod container;
mod engine;
mod image;
mod in_process;
mod protocol;
mod proxied;
mod ready;
mod spec;

pub(super) use protocol::{problem, reached};
pub use spec::{CloudSpec, OnMessage, Place, RunningCloud, StartError};

use super::{CloudError, CloudRecord, Driver, Problem};
use harness_config::CloudSource;
use spec::Kind;
use std::sync::Arc;

/// All drivers. A cloud is started by the first one that supports its place.
const ALL: &[&Kind] = &[&in_process::KIND, &container::KIND, &at_url::KIND, &command::KIND, &image::KIND];

/// Starts a cloud and waits until it is ready. The leftovers of a failed start are removed.
///
/// # Errors
/// There is no such dialect, no port, no image; or it crashed (with its last lines) or did not answer.
pub async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let mut running = match spec.cloud {
        CloudSource::Proxied { behind, proxy } => {
            let cloud = start_bare(CloudSpec { cloud: behind, ..spec }).await?;
            proxied::before(cloud, proxy, spec).await?
        }
        _ => start_bare(spec).await?,
    };
    if spec.cloud.real().is_some()
        && let Err(error) = protocol::only_look(&mut running.record)
    {
        running.stop().await?;
        return Err(error.into());
    }
    Ok(running)
}

async fn start_bare(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    let spec = match spec.cloud {
        CloudSource::Real { driver, .. } => CloudSpec { cloud: driver, ..spec },
        _ => spec,
    };
    match ALL.iter().find(|kind| (kind.suits)(&spec)) {
        Some(kind) => (kind.start)(spec).await,
        None => Err(StartError::NoDriver { cloud: spec.cloud.to_string(), names: names() }),
    }
}

/// A fake cloud in this process.
#[cfg(test)]
pub(crate) async fn start_here(dialect: &str) -> RunningCloud {
    let cloud = CloudSource::Dialect(dialect.to_owned());
    let (folder, on_message): (_, OnMessage) = (std::path::Path::new(""), Arc::new(|_| ()));
    let run = &harness_clusters::images::RunId::fresh();
    let spec = CloudSpec {
        run,
        cloud: &cloud,
        place: Place::LOOPBACK,
        replicas: &[],
        folder,
        on_message: &on_message,
    };
    start(spec).await.expect("it starts")
}

/// The driver of a cloud that was started.
pub(super) fn attach(record: &CloudRecord) -> Result<Arc<dyn Driver>, CloudError> {
    if record.driver == proxied::NAME {
        return protocol::attach_named(record);
    }
    match ALL.iter().find(|kind| kind.name == record.driver) {
        Some(kind) => (kind.attach)(record),
        None => {
            let cause = format!("this program has no such driver; it has {}", names());
            Err(CloudError::new(&record.driver, "attaching", Problem::Unusable).caused_by(cause))
        }
    }
}

fn names() -> String {
    ALL.iter().map(|kind| kind.name).chain([proxied::NAME]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
