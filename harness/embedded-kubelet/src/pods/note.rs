//! What a Pod's worker is told, and what it knows of each container.

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

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Note {
    /// Something it depends on may have changed.
    Look,
    /// A run of a container took more of the machine than it may.
    Overrun { slot: usize, run: u64, overrun: Overrun },
    /// A run of a container ended.
    Exited { slot: usize, run: u64, exit: Exit },
    /// A probe came to a verdict.
    Probed { slot: usize, run: u64, purpose: Purpose, verdict: bool },
    /// Send this signal to a container, or to all; to this run of it, or to whichever runs.
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
    /// Why the run is being ended, where it took too much.
    pub(crate) overran: Option<Overrun>,
    pub(crate) probes: CancellationToken,
    pub(crate) log: Log,
}
