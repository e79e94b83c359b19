//! Waiting: the only code that lets time pass.
//!
//! A wait takes four things, always in this order: the promise, the limit, the read (may fail) and the judge (pure).
//! Because reading and judging are apart, the probe itself keeps the last observation, and no check can forget to
//! report it. Reads are repeated when the [`Pulse`] says that something changed, and at the latest after
//! [`Probe::idle`]; so a wait costs nothing while nothing happens.

mod judge;
mod observed;
mod wait;

pub use judge::{Judge, Seen, absent, at_least, exactly, holds, judge};
pub use observed::Observed;
pub use wait::{Probe, ReadError, poll};

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Says that something a check may be waiting for has changed.
#[derive(Clone, Debug)]
pub struct Pulse {
    beat: Arc<watch::Sender<u64>>,
}

impl Default for Pulse {
    fn default() -> Self {
        Pulse { beat: Arc::new(watch::Sender::new(0)) }
    }
}

impl Pulse {
    /// Wakes everybody who waits.
    pub fn beat(&self) {
        self.beat.send_modify(|count| *count += 1);
    }

    /// A receiver that resolves on each later beat.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.beat.subscribe()
    }
}

/// Lets `period` pass. For loops that keep something alive (a lease, a long poll), never for a verdict.
#[expect(clippy::disallowed_methods, reason = "this module is the one that may")]
pub async fn pause(period: Duration) {
    tokio::time::sleep(period).await;
}
