//! A cloud to start, one that runs, and why one does not.

use crate::{CloudError, CloudRecord, Driver};
use futures::future::BoxFuture;
use harness_clusters::images::{Engine, EngineError, ImageError, PreparedImage, RunId};
use harness_config::CloudSource;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A driver, as a line of the table.
pub(super) struct Kind {
    /// Its name in records and errors.
    pub(super) name: &'static str,
    /// Whether it can start such a cloud.
    pub(super) suits: fn(&CloudSpec<'_>) -> bool,
    /// Starts one and waits until it answers.
    pub(super) start: for<'a> fn(CloudSpec<'a>) -> BoxFuture<'a, Result<RunningCloud, StartError>>,
    /// The driver for a cloud that was started, by another process perhaps.
    pub(super) attach: fn(&CloudRecord) -> Result<Arc<dyn Driver>, CloudError>,
}

/// A cloud to start.
#[derive(Clone, Copy)]
pub struct CloudSpec<'a> {
    /// The run it is for, lane included: its containers bear that name.
    pub run: &'a RunId,
    /// Which one.
    pub cloud: &'a CloudSource,
    /// Where it is to be.
    pub place: Place<'a>,
    /// Names of the CCM's replicas: a proxy has a port for each.
    pub replicas: &'a [String],
    /// A folder for this user alone, which goes when the cloud does.
    pub folder: &'a Path,
    /// Is told what a person should know of a cloud that runs, such as that it has ended by itself.
    pub told: &'a Told,
}

/// Hears of what a person should know.
pub type Told = Arc<dyn Fn(String) + Send + Sync>;

/// Where a cloud has to be so that a cluster's machines reach it.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In this process.
    ThisProcess {
        /// The address of this machine at which machines reach it.
        address: Ipv4Addr,
        /// The name by which they know that address, where they do.
        name: Option<&'a str>,
    },
    /// In a container beside the machines.
    BesideMachines {
        /// The engine.
        engine: &'a Engine,
        /// Name of the network of the machines, which exists.
        network: &'a str,
        /// Its image; loaded into the engine where necessary.
        image: &'a PreparedImage,
    },
}

impl Place<'_> {
    /// In this process, for whoever is on this machine.
    pub const LOOPBACK: Place<'static> = Place::ThisProcess { address: Ipv4Addr::LOCALHOST, name: None };
}

/// What keeps a cloud running.
pub(super) trait Host: fmt::Debug + Send + Sync {
    /// Stops the cloud at once; everything it knew is lost.
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>>;
}

/// A cloud this process has started. One in this process ends with it; one in a container stays until it is stopped,
/// or removed by the labels of its run.
#[derive(Debug)]
pub struct RunningCloud {
    pub(super) record: CloudRecord,
    pub(super) host: Box<dyn Host>,
}

impl RunningCloud {
    /// All a process of the run needs to use it.
    pub fn record(&self) -> &CloudRecord {
        &self.record
    }

    /// Stops it at once; everything it knew is lost.
    ///
    /// # Errors
    /// What it runs in does not answer or refuses.
    pub async fn stop(self) -> Result<(), StartError> {
        self.host.stop().await
    }
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
    #[error("{}", harness_core::check::chain(.0))]
    Driver(#[from] CloudError),
    /// No driver can start it there.
    #[error("no cloud driver can start the cloud '{cloud}' there; there are {names}")]
    NoDriver {
        /// The cloud asked for.
        cloud: String,
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
    #[error(
        "the cloud's container {name} ended with status {status} before it answered; its last lines:\n{lines}"
    )]
    Crashed {
        /// The container.
        name: String,
        /// Its exit status.
        status: i64,
        /// The end of its log.
        lines: String,
    },
    /// It did not answer.
    #[error(
        "the cloud's container {name} did not say within {} s that it is ready; its last lines:\n{lines}",
        .limit.as_secs_f64()
    )]
    Silent {
        /// The container.
        name: String,
        /// How long it had.
        limit: Duration,
        /// The end of its log.
        lines: String,
    },
    /// Docker gave it no address or port.
    #[error("the cloud's container {name} has no {what}; is the network there and the port free?")]
    Unreachable {
        /// The container.
        name: String,
        /// What is missing.
        what: String,
    },
    /// A driver's program cannot be started.
    #[error("the cloud's driver '{line}' cannot be started in {folder}: {cause}")]
    Program {
        /// Program and arguments.
        line: String,
        /// The folder it was to run in.
        folder: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// A driver's program ended instead of answering.
    #[error("the cloud's driver '{line}' ended with {status} before it answered; its last lines:\n{lines}")]
    DriverEnded {
        /// Program and arguments.
        line: String,
        /// Its exit status.
        status: String,
        /// What it wrote last.
        lines: String,
    },
    /// A driver's program did not say that it answers.
    #[error(
        "the cloud's driver '{line}' did not print {{\"ready\": true, \"driver\": \"ADDRESS:PORT\"}} within {} s; its last \
         lines:\n{lines}",
        .limit.as_secs_f64()
    )]
    DriverSilent {
        /// Program and arguments.
        line: String,
        /// How long it had.
        limit: Duration,
        /// What it wrote last.
        lines: String,
    },
    /// A driver did not say where it listens.
    #[error("the cloud's driver '{line}' is ready, but its line names no address under 'driver':\n{lines}")]
    NoAddress {
        /// Program and arguments.
        line: String,
        /// What it wrote last.
        lines: String,
    },
    /// A driver says that it listens where none of this run's can.
    #[error(
        "the cloud's driver '{line}' says that it listens at '{at}'; that has to be an IP address and a port of this machine's \
         loopback or of {told}, which is what ${{DRIVER_LISTEN}} stands for: nobody else is given its token"
    )]
    ForeignAddress {
        /// Program and arguments, or image.
        line: String,
        /// Where it says that it listens.
        at: String,
        /// The address that it was told to listen at.
        told: Ipv4Addr,
    },
    /// A driver in a container listens where nobody reaches it.
    #[error(
        "the cloud's driver '{line}' says that it listens at {at}; on the cluster's network it has to listen at {told}, which is \
         what ${{DRIVER_LISTEN}} stands for: that port is published"
    )]
    OtherPort {
        /// The image.
        line: String,
        /// Where it listens.
        at: String,
        /// Where it was told to.
        told: String,
    },
    /// A driver's program was started and answers otherwise than a driver does.
    #[error("{}; its last lines:\n{lines}", harness_core::check::chain(.error))]
    DriverSays {
        /// What it did.
        error: Box<CloudError>,
        /// What it wrote last.
        lines: String,
    },
    /// The file with a driver's token cannot be read or written.
    #[error("the token file {file} of the cloud's driver: {cause}")]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// Why not.
        cause: String,
    },
    /// Nobody knows where a URL leads.
    #[error("the address of the cloud's {url} is not known: {why}")]
    Host {
        /// The URL.
        url: String,
        /// Why not.
        why: String,
    },
    /// Nobody says where the cloud's API is.
    #[error(
        "no proxy can be put before the cloud '{cloud}': its driver does not say where its API is; write 'cloud.proxy.upstream'"
    )]
    NoUpstream {
        /// The cloud.
        cloud: String,
    },
    /// The proxy before it did not start.
    #[error("the recording proxy did not start: {cause}")]
    Proxy {
        /// Why.
        cause: String,
    },
    /// No token could be made.
    #[error("the system gives no random bits for a token: {0}")]
    Random(getrandom::Error),
}
