//! The notes that a Pod's worker gets, and what it knows about each container.

use k8s_openapi::api::core::v1::Container;
use rustix::process::Signal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::bounds::Overrun;
use super::logs::Log;
use super::probe::Purpose;
use super::process::{Exit, Group};
use super::status::{Ended, Phase};

/// A note for a worker.
#[derive(Debug)]
pub(crate) enum Note {
    /// Something it depends on may have changed.
    PathAccess,
    /// A run of a container used more of the machine than it may.
    Overrun { slot: usize, run: u64, overrun: Overrun },
    /// A run of a container ended.
    Exited { slot: usize, run: u64, exit: Exit },
    /// A probe has a result.
    Probed { slot: usize, run: u64, purpose: Purpose, verdict: bool },
    /// Send this signal to one or all containers; to this run, or to the current one.
    Signal { container: Option<String>, run: Option<u64>, signal: Signal },
    /// The machine lost its power.
    PowerLost,
}

/// One container and its runs.
pub(crate) struct Slot {
    pub(crate) container: Container,
    pub(crate) init: bool,
    pub(crate) phase: Phase,
    pub(crate) last: Option<Ended>,
    pub(crate) restarts: u32,
    pub(crate) started: bool,
    pub(crate) ready: bool,
    pub(crate) backoff: Backoff,
    pub(crate) restart_at: Option<Instant>,
    pub(crate) run: u64,
    pub(crate) group: Option<Group>,
    pub(crate) kill_at: Option<Instant>,
    pub(crate) lost: bool,
    /// The resource that the run used too much of, if it is ended because of that.
    pub(crate) overran: Option<Overrun>,
    pub(crate) probes: CancellationToken,
    pub(crate) log: Log,
}
