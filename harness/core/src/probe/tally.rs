//! Statistics of a wait.

use super::ReadError;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A shorter pause between two reads is not significant, whatever the limit.
const STALL_AT_LEAST: Duration = Duration::from_secs(2);

/// Counts reads during a wait.
#[derive(Debug)]
pub(super) struct Tally {
    began: Instant,
    window_began: Instant,
    /// The time of the last successful read; initially the start of the wait.
    read: Instant,
    longest_gap: Duration,
    /// The same in the current window.
    gap_of_window: Duration,
    reads: u64,
    errors: u64,
    last_error: Option<(Instant, ReadError)>,
}

impl Tally {
    pub(super) fn begin() -> Tally {
        let now = Instant::now();
        let none = Duration::ZERO;
        let (longest_gap, gap_of_window) = (none, none);
        Tally {
            began: now,
            window_began: now,
            read: now,
            longest_gap,
            gap_of_window,
            reads: 0,
            errors: 0,
            last_error: None,
        }
    }

    /// The start of the current window.
    pub(super) fn window_began(&self) -> Instant {
        self.window_began
    }

    /// A read succeeded just now.
    pub(super) fn succeeded(&mut self) {
        let now = Instant::now();
        self.reads += 1;
        self.gap_of_window = self.gap_of_window.max(now - self.read);
        self.longest_gap = self.longest_gap.max(self.gap_of_window);
        self.read = now;
    }

    /// A read failed just now.
    pub(super) fn failed(&mut self, error: ReadError) {
        self.reads += 1;
        self.errors += 1;
        self.last_error = Some((Instant::now(), error));
    }

    /// A window begins now: what was not read before it does not count.
    pub(super) fn begin_window(&mut self) {
        (self.window_began, self.read) = (Instant::now(), Instant::now());
        self.gap_of_window = Duration::ZERO;
    }

    /// Whether reads failed for more than half of `limit`, the length of the window: then it is not evidence about the CCM.
    pub(super) fn stalled(&self, limit: Duration) -> bool {
        self.gap_of_window > (limit / 2).max(STALL_AT_LEAST)
    }

    pub(super) fn ended(&self, ending: Ending, seen: Option<String>) -> Ended {
        let now = Instant::now();
        Ended {
            ending,
            seen,
            waited: now - self.began,
            reads: self.reads,
            read_errors: self.errors,
            last_read_error: self.last_error.as_ref().map(|(at, error)| (error.text.clone(), now - *at)),
            longest_gap: self.longest_gap,
        }
    }
}

/// The result for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was fulfilled.
    Met,
    /// It was violated.
    Broken,
    /// Unknown: reads failed, or this machine stalled.
    Undetermined,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The result for the claim.
    pub ending: Ending,
    /// What was last seen, as text; empty for a fulfilled claim.
    pub seen: Option<String>,
    /// How long the wait took.
    pub waited: Duration,
    /// How many reads were tried.
    pub reads: u64,
    /// How many of these reads failed.
    pub read_errors: u64,
    /// The last failed read, and how long before the end it was.
    pub last_read_error: Option<(String, Duration)>,
    /// The longest time between two successful reads.
    pub longest_gap: Duration,
}

impl fmt::Display for Ended {
    /// The statistics in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |duration: Duration| duration.as_secs_f64();
        let reads = if self.reads == 1 { "read" } else { "reads" };
        write!(
            f,
            "{:.1}s, {} {reads}, at most {:.1}s apart",
            s(self.waited),
            self.reads,
            s(self.longest_gap)
        )?;
        if let Some((error, ago)) = &self.last_read_error {
            let errors = if self.read_errors == 1 { "read error" } else { "read errors" };
            write!(f, ", {} {errors} (last: {error}, {:.1}s before the end)", self.read_errors, s(*ago))?;
        }
        Ok(())
    }
}
