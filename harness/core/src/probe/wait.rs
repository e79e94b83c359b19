//! The loop that waits for claims.

use super::tally::Tally;
use super::{Ended, Ending, Observation, Pulse, ReadError, ReadSource, SingleRead};
use crate::check::{CheckError, SubjectName, Violation};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum time for one read.
const READ_AT_MOST: Duration = Duration::from_secs(10);
/// Minimum time for a read at the deadline.
const LAST_READ: Duration = Duration::from_secs(5);
/// How often a window is watched if the machine stalls in each.
const WINDOWS: u32 = 4;
/// Why a result is unknown after a stall.
const STALLED: &str = "the state could not be read for more than half of the time";

/// How long to wait for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// It must become true once within the limit.
    Within(Duration),
    /// It must hold during the whole window.
    Throughout(Duration),
}

/// A claim to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The claim, a sentence.
    pub text: String,
    /// Its subject, if that is a single thing.
    pub subject: Option<SubjectName>,
    /// What fulfils it.
    pub expected: String,
    /// How long.
    pub span: Span,
}

/// An observer of the beginning and end of each wait.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// A wait begins. `wait` is its number within the probe, from 1; several may be in progress.
    fn begins(&self, wait: u32, promise: &Promise);
    /// The wait with that number has ended.
    fn ends(&self, wait: u32, promise: &Promise, ended: &Ended);
}

/// Waits on behalf of one check and records how much of its limits it used.
#[derive(Debug)]
pub struct Probe {
    pulse: Pulse,
    /// Maximum time between two reads while nothing changes.
    pub idle: Duration,
    /// Minimum time between two reads, however much changes.
    pub spacing: Duration,
    observer: Option<Box<dyn Observer>>,
    waits: AtomicU32,
    used_percent: Mutex<Option<u32>>,
}

impl Probe {
    /// Creates a probe that reads again whenever `pulse` beats.
    pub fn new(pulse: Pulse) -> Probe {
        Probe {
            pulse,
            idle: Duration::from_millis(500),
            spacing: Duration::from_millis(30),
            observer: None,
            waits: AtomicU32::new(0),
            used_percent: Mutex::new(None),
        }
    }

    /// Adds an observer of all waits.
    #[must_use]
    pub fn observed_by(mut self, observer: Box<dyn Observer>) -> Probe {
        self.observer = Some(observer);
        self
    }

    /// The largest fraction of a limit that a claim with a limit has used, in percent.
    pub fn used_percent(&self) -> Option<u32> {
        *self.used_percent.lock().expect("no holder of this lock panics")
    }

    /// Waits for a claim.
    ///
    /// The first read happens at once, and each read is bounded; the last one, at the deadline, uses the origin. A single
    /// read of a copy that may be older than the wait decides nothing: until the copy has once shown the claim fulfilled,
    /// a copy that shows a violation is checked against the origin. A window for a claim that must hold begins again if reads
    /// failed for more than half of it; a violation in a later window then decides nothing.
    ///
    /// # Errors
    /// [`CheckError::Violation`] with the last observation when a claim did not become true within its limit or never
    /// can, or at the first moment at which a claim that must hold does not. [`CheckError::Error`] when a read failed
    /// permanently, when the last one failed, or when reads failed for more than half of the time (of each window, for a claim
    /// that must hold): then it is unknown what the CCM did.
    pub async fn wait(&self, promise: &Promise, look: &mut dyn SingleRead) -> Result<(), CheckError> {
        let wait = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(observer) = &self.observer {
            observer.begins(wait, promise);
        }
        let mut tally = Tally::begin();
        let outcome = self.watch(promise, look, &mut tally).await;
        let (ending, seen) = match &outcome {
            Ok(()) => (Ending::Met, None),
            Err(Why::Broken(why)) => (Ending::Broken, Some(with_reason(look.shown(), why))),
            Err(Why::Undetermined(why)) => (Ending::Undetermined, Some(why.clone())),
            Err(Why::Stalled) => (Ending::Undetermined, Some(STALLED.to_owned())),
        };
        let ended = tally.ended(ending, seen);
        if let Span::Within(limit) = promise.span
            && ending != Ending::Undetermined
        {
            self.note_use(ended.waited, limit);
        }
        tracing::debug!(promise = promise.text, ?ending, took = ?ended.waited, "waited");
        if let Some(observer) = &self.observer {
            observer.ends(wait, promise, &ended);
        }
        outcome.map_err(|why| match why {
            Why::Broken(_) => CheckError::Violation(Box::new(violation(promise, &ended))),
            Why::Undetermined(why) => CheckError::Error(undetermined(promise, &why, &ended)),
            Why::Stalled => CheckError::Error(undetermined(promise, STALLED, &ended)),
        })
    }

    /// Watches for one window, and again if too little of it could be read.
    async fn watch(
        &self,
        promise: &Promise,
        look: &mut dyn SingleRead,
        tally: &mut Tally,
    ) -> Result<(), Why> {
        let mut outcome = self.watch_window(promise, look, tally).await;
        for _ in 1..WINDOWS {
            if !matches!((&outcome, promise.span), (Err(Why::Stalled), Span::Throughout(_))) {
                return outcome;
            }
            tally.begin_window();
            outcome = match self.watch_window(promise, look, tally).await {
                // What the check has prepared may have been meant for the first window only.
                Err(Why::Broken(why)) => {
                    return Err(Why::Undetermined(format!(
                        "{STALLED}, and later the claim did not hold: {why}"
                    )));
                }
                outcome => outcome,
            };
        }
        outcome
    }

    async fn watch_window(
        &self,
        promise: &Promise,
        look: &mut dyn SingleRead,
        tally: &mut Tally,
    ) -> Result<(), Why> {
        let (Span::Within(span) | Span::Throughout(span)) = promise.span;
        let deadline = tally.window_began() + span;
        let mut beats = self.pulse.listen();
        let mut copy_is_current = false;
        loop {
            beats.mark_unchanged();
            let last = Instant::now() >= deadline;
            let reach = if last { ReadSource::Origin } else { ReadSource::Cache };
            let mut looked = read(look, reach, deadline).await;
            if reach == ReadSource::Cache {
                match (&looked, promise.span) {
                    (Ok(Observation::Matched(())), _) => copy_is_current = true,
                    (Ok(Observation::Impossible(_)), _)
                    | (Ok(Observation::Pending(_)), Span::Throughout(_))
                        if !copy_is_current =>
                    {
                        looked = confirmed(read(look, ReadSource::Origin, deadline).await, promise.span);
                    }
                    (Ok(Observation::Impossible(_) | Observation::Pending(_)) | Err(_), _) => {}
                }
            }
            match looked {
                Ok(seen) => {
                    tally.succeeded();
                    match (seen, promise.span) {
                        (Observation::Matched(()), Span::Within(_)) => return Ok(()),
                        (Observation::Matched(()), Span::Throughout(_)) => {}
                        (Observation::Impossible(why), _)
                        | (Observation::Pending(why), Span::Throughout(_)) => {
                            return Err(Why::Broken(why));
                        }
                        (Observation::Pending(_), Span::Within(_)) if last && tally.stalled(span) => {}
                        (Observation::Pending(why), Span::Within(_)) if last => return Err(Why::Broken(why)),
                        (Observation::Pending(_), Span::Within(_)) => {}
                    }
                }
                Err(error) if error.fatal => return Err(Why::Undetermined(error.text)),
                Err(error) => {
                    tally.failed(error.clone());
                    if last {
                        return Err(Why::Undetermined(format!(
                            "the state could not be read at the end: {error}"
                        )));
                    }
                }
            }
            if last && tally.stalled(span) {
                return Err(Why::Stalled);
            }
            if last {
                return Ok(());
            }
            let _ = timeout_at(deadline, self.next_beat(&mut beats)).await;
        }
    }

    async fn next_beat(&self, beats: &mut tokio::sync::watch::Receiver<u64>) {
        super::pause(self.spacing).await;
        let _ = timeout(self.idle, beats.changed()).await;
    }

    fn note_use(&self, took: Duration, limit: Duration) {
        if limit.is_zero() {
            return;
        }
        let percent = (took.as_secs_f64() / limit.as_secs_f64() * 100.0).min(100.0) as u32;
        let mut used = self.used_percent.lock().expect("no holder of this lock panics");
        *used = Some(used.unwrap_or(0).max(percent));
    }
}

/// Why a wait ended without the claim being fulfilled.
enum Why {
    /// The claim was violated; the matcher's reason, which may be empty.
    Broken(String),
    /// The result is unknown.
    Undetermined(String),
    /// The result is unknown, because too little could be read in the window.
    Stalled,
}

async fn read(
    look: &mut dyn SingleRead,
    reach: ReadSource,
    deadline: Instant,
) -> Result<Observation<()>, ReadError> {
    let left = deadline.saturating_duration_since(Instant::now()).max(LAST_READ);
    match timeout(left.min(READ_AT_MOST), look.look(reach)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ReadError::passing("the read was not answered in time")),
    }
}

/// The result of the origin after the cached copy has shown a violation. If the origin shows none, the copy is outdated
/// and does not count.
fn confirmed(origin: Result<Observation<()>, ReadError>, span: Span) -> Result<Observation<()>, ReadError> {
    match (origin, span) {
        (Ok(Observation::Matched(())), Span::Throughout(_)) => {
            Err(ReadError::passing("the cached copy is older than the origin"))
        }
        (origin, _) => origin,
    }
}

fn with_reason(shown: Option<String>, why: &str) -> String {
    let shown = shown.unwrap_or_else(|| "nothing".to_owned());
    if why.is_empty() { shown } else { format!("{shown} ({why})") }
}

fn violation(promise: &Promise, ended: &Ended) -> Violation {
    let expected = match promise.span {
        Span::Within(_) => promise.expected.clone(),
        Span::Throughout(window) => format!("for {}s: {}", window.as_secs(), promise.expected),
    };
    Violation {
        subject: promise.subject.clone(),
        waited: Some(ended.to_string()),
        ..Violation::new(&promise.text, expected, ended.seen.clone().unwrap_or_default())
    }
}

fn undetermined(promise: &Promise, why: &str, ended: &Ended) -> String {
    let subject = promise.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
    format!("could not determine whether '{}' was fulfilled: {subject}{why} (waited {ended})", promise.text)
}
