//! A cloud to start, a running cloud, and the errors of a start.

use crate::{CloudError, CloudRecord, Driver};
use futures::future::BoxFuture;
use harness_clusters::images::{Engine, EngineError, ImageError, PreparedImage, RunId};
use harness_config::CloudSource;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An entry in the table of drivers.
pub(super) struct Kind {
    /// Its name in records and errors.
    pub(super) name: &'static str,
    /// Whether it can start this cloud.
    pub(super) suits: fn(&CloudSpec<'_>) -> bool,
    /// Starts one and waits until it is ready.
    pub(super) start: for<'a> fn(CloudSpec<'a>) -> BoxFuture<'a, Result<RunningCloud, StartError>>,
    /// The driver for a started cloud, possibly from another process.
    pub(super) attach: fn(&CloudRecord) -> Result<Arc<dyn Driver>, CloudError>,
}

/// A cloud to start.
#[derive(Clone, Copy)]
pub struct CloudSpec<'a> {
    /// The run that it belongs to, including the lane: its containers have that name.
    pub run: &'a RunId,
    /// The source of the cloud.
    pub cloud: &'a CloudSource,
    /// The place where it has to run.
    pub place: Place<'a>,
    /// Names of the CCM's replicas: a proxy has a port for each.
    pub replicas: &'a [String],
    /// A folder for this user alone, which is removed with the cloud.
    pub folder: &'a Path,
    /// Called with messages about a running cloud, for example that it has ended by itself.
    pub on_message: &'a OnMessage,
}

/// Receives messages for the user.
pub type OnMessage = Arc<dyn Fn(String) + Send + Sync>;

/// The place where a cloud has to run so that a cluster's machines reach it.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In this process.
    ThisProcess {
        /// The address of this machine for the cluster's machines.
        address: Ipv4Addr,
        /// The name that they have for this address, if any.
        name: Option<&'a str>,
    },
    /// In a container on the network of the machines.
    NextToMachines {
        /// The engine.
        engine: &'a Engine,
        /// The name of the machines' network, which exists.
        network: &'a str,
        /// Its image, which is loaded into the engine if necessary.
        image: &'a PreparedImage,
    },
}

impl Place<'_> {
    /// In this process, for clients on this machine.
    pub const LOOPBACK: Place<'static> = Place::ThisProcess { address: Ipv4Addr::LOCALHOST, name: None };
}

/// The owner of a running cloud's process or container.
pub(super) trait Host: fmt::Debug + Send + Sync {
    /// Stops the cloud at once; its state is lost.
    fn stop(self: Box<Self>) -> BoxFuture<'static, Result<(), StartError>>;
}

/// A cloud that this process has started. One in this process ends with it; one in a container stays until it
/// is stopped, or removed by the labels of its run.
#[derive(Debug)]
pub struct RunningCloud {
    pub(super) record: CloudRecord,
    pub(super) host: Box<dyn Host>,
}

impl RunningCloud {
    /// Everything that a process of the run needs to use it.
    pub fn record(&self) -> &CloudRecord {
        &self.record
    }

    /// Stops it at once; its state is lost.
    ///
    /// # Errors
    /// Its engine does not answer or refuses.
    pub async fn stop(self) -> Result<(), StartError> {
        self.host.stop().await
    }
}

/// The reason why a cloud did not start, or could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An error of Docker.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An error of its image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Its answer is not that of a driver.
    #[error("{}", harness_core::check::chain(.0))]
    Driver(#[from] CloudError),
    /// No driver can start it in this place.
    #[error("no cloud driver can start the cloud '{cloud}' there; there are {names}")]
    NoDriver {
        /// The requested cloud.
        cloud: String,
        /// The names of the drivers.
        names: String,
    },
    /// The cloud in this process did not start.
    #[error("the fake cloud did not start: {cause}")]
    InProcess {
        /// The cause.
        cause: String,
    },
    /// The container ended before it was ready.
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
    /// The container was not ready in time.
    #[error(
        "the cloud's container {name} did not say within {} s that it is ready; its last lines:\n{lines}",
        .limit.as_secs_f64()
    )]
    Silent {
        /// The container.
        name: String,
        /// How long it was waited for.
        limit: Duration,
        /// The end of its log.
        lines: String,
    },
    /// Docker reported no address or port for it.
    #[error("the cloud's container {name} has no {what}; is the network there and the port free?")]
    Unreachable {
        /// The container.
        name: String,
        /// What is missing.
        what: String,
    },
    /// The program of a driver cannot be started.
    #[error("the cloud's driver '{line}' cannot be started in {folder}: {}", harness_core::files::why_not_started(.cause))]
    Program {
        /// Program and arguments.
        line: String,
        /// The folder in which it should run.
        folder: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The program of a driver ended before it was ready.
    #[error("the cloud's driver '{line}' ended with {status} before it answered; its last lines:\n{lines}")]
    DriverEnded {
        /// Program and arguments.
        line: String,
        /// Its exit status.
        status: String,
        /// Its last lines of output.
        lines: String,
    },
    /// The program of a driver did not report that it is ready.
    #[error(
        "the cloud's driver '{line}' did not print {{\"ready\": true, \"driver\": \"ADDRESS:PORT\"}} within {} s; its last \
         lines:\n{lines}",
        .limit.as_secs_f64()
    )]
    DriverSilent {
        /// Program and arguments.
        line: String,
        /// How long it was waited for.
        limit: Duration,
        /// Its last lines of output.
        lines: String,
    },
    /// A driver did not report its address.
    #[error("the cloud's driver '{line}' is ready, but its line names no address under 'driver':\n{lines}")]
    NoAddress {
        /// Program and arguments.
        line: String,
        /// Its last lines of output.
        lines: String,
    },
    /// A driver reports an address that cannot be its own.
    #[error(
        "the cloud's driver '{line}' says that it listens at '{at}'; it must be an IP address and a port of this machine's \
         loopback or of {given}, the value of ${{DRIVER_LISTEN}}, because its token is not sent to other addresses"
    )]
    ForeignAddress {
        /// Program and arguments, or image.
        line: String,
        /// The reported address.
        at: String,
        /// The address that it was given.
        given: Ipv4Addr,
    },
    /// A driver in a container listens on an address that cannot be reached.
    #[error(
        "the cloud's driver '{line}' says that it listens at {at}; on the cluster's network it has to listen at {given}, which is \
         what ${{DRIVER_LISTEN}} stands for: that port is published"
    )]
    OtherPort {
        /// The image.
        line: String,
        /// The address that it listens on.
        at: String,
        /// The address that it was given.
        given: String,
    },
    /// The program of a driver was started, but its answers are not those of a driver.
    #[error("{}; its last lines:\n{lines}", harness_core::check::chain(.error))]
    DriverSays {
        /// The error.
        error: Box<CloudError>,
        /// Its last lines of output.
        lines: String,
    },
    /// The file with a driver's token cannot be read or written.
    #[error("the token file {file} of the cloud's driver: {cause}")]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The host of a URL cannot be resolved.
    #[error("the address of the cloud's {url} is not known: {why}")]
    Host {
        /// The URL.
        url: String,
        /// The cause.
        why: String,
    },
    /// The address of the cloud's API is not known.
    #[error(
        "no proxy can be put before the cloud '{cloud}': its driver does not say where its API is; write 'cloud.proxy.upstream'"
    )]
    NoUpstream {
        /// The cloud.
        cloud: String,
    },
    /// The proxy in front of it did not start.
    #[error("the recording proxy did not start: {cause}")]
    Proxy {
        /// The cause.
        cause: String,
    },
    /// No token could be made.
    #[error("the system gives no random bits for a token: {0}")]
    Random(getrandom::Error),
}
