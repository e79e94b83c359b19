//! The drivers there are, and how one is started.

mod container;
mod in_process;
mod protocol;

use super::{Cloud, CloudError, CloudRecord, Driver, Problem};
use crate::images::{Engine, EngineError, ImageError, PreparedImage, RunId};
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The drivers. A cloud is started by the first that can be where it is wanted.
const ALL: &[&Kind] = &[&in_process::KIND, &container::KIND];

/// A driver, as a line of the table.
struct Kind {
    /// Its name in records and errors.
    name: &'static str,
    /// Whether it can start such a cloud.
    suits: fn(&CloudSpec<'_>) -> bool,
    /// Starts one and waits until it answers.
    start: for<'a> fn(CloudSpec<'a>) -> BoxFuture<'a, Result<RunningCloud, StartError>>,
    /// The driver for a cloud that was started, by another process perhaps.
    attach: fn(&CloudRecord) -> Result<Arc<dyn Driver>, CloudError>,
}

/// A cloud to start.
#[derive(Clone, Copy, Debug)]
pub struct CloudSpec<'a> {
    /// The provider's API it speaks, e.g. `native`.
    pub dialect: &'a str,
    /// Where it is to be.
    pub place: Place<'a>,
}

/// Where a cloud has to be so that a cluster's machines reach it.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In this process, on loopback.
    ThisProcess,
    /// In a container beside the machines.
    BesideMachines {
        /// The run it is for.
        run: &'a RunId,
        /// The engine.
        engine: &'a Engine,
        /// Name of the network of the machines, which exists.
        network: &'a str,
        /// Its image; loaded into the engine where necessary.
        image: &'a PreparedImage,
    },
}

/// What keeps a cloud running.
trait Host: fmt::Debug + Send + Sync {
    /// Stops the cloud at once; everything it knew is lost.
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>>;
}

/// A cloud this process has started. One in this process ends with it; one in a container stays until it is stopped,
/// or removed by the labels of its run.
#[derive(Debug)]
pub struct RunningCloud {
    record: CloudRecord,
    host: Box<dyn Host>,
}

impl RunningCloud {
    /// All a process of the run needs to use it.
    pub fn record(&self) -> &CloudRecord {
        &self.record
    }

    /// The cloud, to be used.
    ///
    /// # Errors
    /// As [`Cloud::attach`].
    pub fn attach(&self) -> Result<Cloud, CloudError> {
        Cloud::attach(&self.record)
    }

    /// Stops it at once; everything it knew is lost.
    ///
    /// # Errors
    /// What it runs in does not answer or refuses.
    pub async fn stop(self) -> Result<(), StartError> {
        self.host.stop().await
    }
}

/// Starts a cloud and waits until it answers. What a failed start has made is removed.
///
/// # Errors
/// There is no such dialect, no port, no image; or it crashed (with its last lines) or stayed silent.
pub async fn start(spec: CloudSpec<'_>) -> Result<RunningCloud, StartError> {
    match ALL.iter().find(|kind| (kind.suits)(&spec)) {
        Some(kind) => (kind.start)(spec).await,
        None => Err(StartError::NoDriver { dialect: spec.dialect.to_owned(), names: names() }),
    }
}

/// The driver of a cloud that was started.
pub(super) fn attach(record: &CloudRecord) -> Result<Arc<dyn Driver>, CloudError> {
    match ALL.iter().find(|kind| kind.name == record.driver) {
        Some(kind) => (kind.attach)(record),
        None => {
            let cause = format!("this program has no such driver; it has {}", names());
            Err(CloudError::new(&record.driver, "attaching", Problem::Unusable).caused_by(cause))
        }
    }
}

fn names() -> String {
    ALL.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

/// A cloud did not start, or could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Docker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// It answers otherwise than a driver does.
    #[error("{}", crate::check::chain(.0))]
    Driver(#[from] CloudError),
    /// No driver can start it there.
    #[error("no cloud driver can start a cloud that speaks {dialect} there; there are {names}")]
    NoDriver {
        /// The dialect asked for.
        dialect: String,
        /// The drivers.
        names: String,
    },
    /// The one in this process did not start.
    #[error("the fake cloud did not start: {cause}")]
    InProcess {
        /// Why.
        cause: String,
    },
    /// It ended instead of answering.
    #[error("the fake cloud {name} ended with status {status} before it answered; its last lines:\n{lines}")]
    Crashed {
        /// The container.
        name: String,
        /// Its exit status.
        status: i64,
        /// The end of its log.
        lines: String,
    },
    /// It did not answer.
    #[error("the fake cloud {name} did not say within {limit:?} that it is ready; its last lines:\n{lines}")]
    Silent {
        /// The container.
        name: String,
        /// How long it had.
        limit: Duration,
        /// The end of its log.
        lines: String,
    },
    /// Docker gave it no address or port.
    #[error("the fake cloud {name} has no {what}; is the network there and the port free?")]
    Unreachable {
        /// The container.
        name: String,
        /// What is missing.
        what: String,
    },
    /// No token could be made.
    #[error("the system gives no random bits for a token: {0}")]
    Random(getrandom::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Facility, chain};

    #[test]
    fn a_record_of_no_driver_is_refused_by_name() {
        let record = CloudRecord {
            driver: "moto".into(),
            ip: [127, 0, 0, 1].into(),
            endpoint: String::new(),
            access: serde_json::Value::Null,
            secrets: Vec::new(),
        };
        let error = Cloud::attach(&record).expect_err("no such driver");
        assert_eq!(
            chain(&error),
            "cloud driver 'moto', attaching: what is recorded of it cannot be used: this program has no such driver; it \
             has fake-cloud-in-process, fake-cloud-container"
        );
        let known = CloudRecord { driver: in_process::KIND.name.into(), ..record };
        let error = Cloud::attach(&known).expect_err("it lacks everything");
        assert!(
            chain(&error).contains("cannot be used: missing field") || chain(&error).contains("invalid type")
        );
    }

    #[tokio::test]
    async fn a_cloud_in_this_process_has_every_facility_and_is_joined_by_its_record() {
        let running = start(CloudSpec { dialect: "digitalocean", place: Place::ThisProcess });
        let running = running.await.expect("it starts");
        let text = serde_json::to_string(running.record()).expect("plain data");
        let cloud = Cloud::attach(&serde_json::from_str(&text).expect("a record")).expect("attached");
        assert_eq!(cloud.driver(), "fake-cloud-in-process");
        assert!(Facility::OF_THE_CLOUD.iter().all(|facility| cloud.facilities().contains(facility)));
        assert_eq!(cloud.shown().internal_v6, Some(0));
        assert!(cloud.inventory().await.expect("an inventory").instances.is_empty());
        assert!(cloud.remove_instance("1").await.expect_err("it is not there").is_not_found());
        running.stop().await.expect("stopped");
        let gone = cloud.inventory().await.expect_err("it is stopped");
        assert_eq!((gone.problem, gone.call), (Problem::NoAnswer, "reading the inventory"));
    }
}
