//! Waiting: the only code that lets time pass.
//!
//! A wait has a claim (text, subject, time limit) and reads and matches something. Because reading and matching are
//! separate, the last observation is always kept, and no check can forget to report it. Reads are repeated when the
//! [`Pulse`] signals a change, and at the latest after [`Probe::idle`], so a wait costs nothing while nothing happens.
//!
//! Reads during a wait may use a copy (a watch, a mirror of a journal). The end of a wait never depends on a copy: the
//! last read of a violated or fulfilled claim uses the origin itself.

mod matcher;
mod observed;
mod poll;
mod single_read;
mod tally;
#[cfg(test)]
mod tests;
mod wait;

pub use matcher::{Matcher, Observation, both, gone, holds, matcher, present};
pub use observed::Observed;
pub use poll::poll;
pub use single_read::{ReadError, ReadSource, Reading, SingleRead};
pub use tally::{Ended, Ending};
pub use wait::{Observer, Probe, Promise, Span};

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Signals that something for which a check may be waiting has changed.
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
    /// Wakes all waiters.
    pub fn beat(&self) {
        self.beat.send_modify(|count| *count += 1);
    }

    /// A receiver that resolves on each later beat.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.beat.subscribe()
    }
}

/// Sleeps for `period`. For loops that keep something alive (a lease, a long poll), never for a verdict.
///
/// ```
/// use harness_core::probe::pause;
/// use std::time::Duration;
///
/// async fn settles() {
///     pause(Duration::from_secs(2)).await;
/// }
/// ```
#[expect(clippy::disallowed_methods, reason = "this module is the one that may")]
pub async fn pause(period: Duration) {
    tokio::time::sleep(period).await;
}
