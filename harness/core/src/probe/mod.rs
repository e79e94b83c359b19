//! Waiting: the only code that lets time pass.
//!
//! A wait has a promise (what is said, of which subject, for how long) and looks at something: it reads and matches.
//! Because reading and matching are apart, the last observation is kept, and no check can forget to report it. Reads are
//! repeated when the [`Pulse`] says that something changed, and at the latest after [`Probe::idle`]; so a wait costs
//! nothing while nothing happens.
//!
//! What is read in between may be a copy (a watch, a mirror of a journal). What ends a wait never is: the last read
//! of a broken or a kept promise asks the origin itself.

mod look;
mod matcher;
mod observed;
mod poll;
mod tally;
#[cfg(test)]
mod tests;
mod wait;

pub use look::{Look, ReadError, ReadSource, Reading};
pub use matcher::{Matcher, Seen, both, gone, holds, matcher, present};
pub use observed::Observed;
pub use poll::poll;
pub use tally::{Ended, Ending};
pub use wait::{Observer, Probe, Promise, Span};

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
