//! The cloud's journal as this process has seen it: updated by a long poll, and readable only while the cloud answers.
//!
//! It is bounded ([`RecentEntries`]); dropped entries are in the run's events, and a reader that needs them gets an error.

use harness_clouds::{Cloud, CloudError, Entry, Op, Problem, READING_THE_JOURNAL};
use harness_core::check::chain;
use harness_core::probe::{Pulse, ReadError, pause};
pub use recent::Reader;
use recent::{RecentEntries, is_over};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Duration of one long poll.
const LONG_POLL: Duration = Duration::from_secs(20);
/// How long the cloud may take for an answer in addition to the duration of a long poll.
const LIMIT: Duration = Duration::from_secs(10);
/// Interval between two reads of calls in progress, whose outcome is still unknown.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// Delay before a failed poll is repeated.
const AGAIN: Duration = Duration::from_millis(250);

/// An observer that is called once for each call to the cloud, when the call has ended.
pub type CallObserver = Box<dyn Fn(&Entry) + Send + Sync>;

/// A mirror of the journal. Clones share it.
#[derive(Clone)]
pub struct Journal {
    mirror: Arc<Mirror>,
    _task: Option<Arc<Follower>>,
}

/// Ends the long poll when the mirror is no longer used.
struct Follower(JoinHandle<()>);

/// The position at which a check began. Later entries are kept as long as this lives.
pub struct Beginning {
    mirror: Arc<Mirror>,
    position: u64,
}

impl Beginning {
    /// The position in the journal.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl fmt::Debug for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.mirror.seen().kept.end(self.position);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Mirror {
    cloud: Cloud,
    pulse: Pulse,
    seen: Mutex<Received>,
    observers: Mutex<Vec<CallObserver>>,
}

struct Received {
    kept: RecentEntries,
    /// The operations of all calls, kept or not.
    operations: BTreeSet<Op>,
    /// When the cloud last answered.
    heard: Instant,
    /// The error of the poll, if the cloud has not answered since.
    broken: Option<ReadError>,
}

impl Journal {
    /// Starts mirroring with the entries after `from`; beats `pulse` on each change. For a driver without a journal every
    /// read fails.
    ///
    /// # Errors
    /// The cloud does not answer, or no longer has the entries right after `from`.
    pub async fn follow(cloud: Cloud, pulse: Pulse, from: u64) -> Result<Journal, CloudError> {
        let kept = RecentEntries::since(from);
        let seen = Received { kept, operations: BTreeSet::new(), heard: Instant::now(), broken: None };
        let mirror = Arc::new(Mirror { cloud, pulse, seen: Mutex::new(seen), observers: Mutex::default() });
        match mirror.ask(Duration::ZERO).await {
            Ok(_) => {}
            Err(error) if matches!(error.problem, Problem::Lacks(_)) => {
                mirror.broke(&error);
                return Ok(Journal { mirror, _task: None });
            }
            Err(error) => return Err(error),
        }
        let followed = mirror.clone();
        let task = tokio::spawn(async move { followed.follow().await });
        Ok(Journal { mirror, _task: Some(Arc::new(Follower(task))) })
    }

    /// Passes every call that has ended, and each that ends from now on, to `observer`, once, in the order in which their
    /// ends are noticed.
    pub fn observe(&self, observer: CallObserver) {
        let mut observers = self.mirror.observers.lock().expect("no holder of this lock panics");
        self.mirror.seen().kept.iter().filter(|entry| is_over(entry)).for_each(&observer);
        observers.push(observer);
    }

    /// The operations of all calls that were seen since the session began.
    pub fn operations(&self) -> BTreeSet<Op> {
        self.mirror.seen().operations.clone()
    }

    /// The last known position, however old.
    pub fn position(&self) -> u64 {
        self.mirror.seen().kept.last()
    }

    /// The last known position, for a check that begins: later entries are kept as long as the result lives, within the
    /// limits of the mirror.
    pub fn begin(&self) -> Beginning {
        let position = self.mirror.seen().kept.begin();
        Beginning { mirror: self.mirror.clone(), position }
    }

    /// The journal's current position, as a start for later reads.
    ///
    /// # Errors
    /// While the cloud does not answer: with an old position, earlier entries would count as later ones.
    pub fn mark(&self) -> Result<u64, ReadError> {
        self.mirror.fresh(|seen| Ok(seen.kept.last()))
    }

    /// Entries after the start of `reader` that fit, in order of arrival. A reader continues where its last read ended.
    ///
    /// # Errors
    /// While the cloud does not answer: the known entries are then out of date, and the error says since when and why.
    /// Also if calls that the reader has not read are no longer kept.
    pub fn read(&self, reader: &mut Reader, fits: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, ReadError> {
        self.mirror.fresh(|seen| reader.read(&seen.kept, fits))
    }

    /// The entries after `mark` that are kept, and how many are not.
    ///
    /// # Errors
    /// While the cloud does not answer.
    pub fn kept_since(&self, mark: u64) -> Result<(u64, Vec<Entry>), ReadError> {
        let whole = |seen: &Received| {
            let gone = seen.kept.gone().saturating_sub(mark);
            Ok((gone, seen.kept.after(mark.max(seen.kept.gone()))?.cloned().collect()))
        };
        self.mirror.fresh(whole)
    }

    /// The last `count` entries after `mark` that fit and are kept, in order of arrival.
    ///
    /// # Errors
    /// While the cloud does not answer.
    pub fn last_since(
        &self,
        mark: u64,
        count: usize,
        fits: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<Entry>, ReadError> {
        self.mirror.fresh(|seen| {
            let kept = seen.kept.after(mark.max(seen.kept.gone()))?;
            let mut last: Vec<Entry> = kept.rev().filter(|entry| fits(entry)).take(count).cloned().collect();
            last.reverse();
            Ok(last)
        })
    }

    /// Updates the mirror to the journal's current end by a request to the cloud.
    ///
    /// # Errors
    /// The cloud does not answer, or its answer is invalid.
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        let mut last = 0;
        loop {
            let before = self.position();
            if let Err(error) = self.mirror.ask(Duration::ZERO).await {
                return Err(self.mirror.seen().unheard(&failure(&error)));
            }
            // A cloud may return its journal in parts; the last part is smaller than the others. Entries that arrive during
            // the request are not waited for: with a constant stream of calls that would take forever.
            let fresh = self.position().saturating_sub(before);
            if fresh == 0 || fresh < last {
                return Ok(());
            }
            last = fresh;
        }
    }
}

impl Received {
    /// The error if the cloud does not answer: since when and why.
    fn unheard(&self, why: &ReadError) -> ReadError {
        if why.fatal {
            return why.clone();
        }
        let silent = self.heard.elapsed().as_secs_f64();
        let text = format!("the cloud's journal was last read {silent:.1}s ago: {}", why.text);
        ReadError { text, fatal: why.fatal }
    }
}

impl Mirror {
    fn seen(&self) -> std::sync::MutexGuard<'_, Received> {
        self.seen.lock().expect("no holder of this lock panics")
    }

    async fn follow(&self) {
        loop {
            let under_way = self.seen().kept.read_on().1;
            let wait = if under_way { Duration::ZERO } else { LONG_POLL };
            match self.ask(wait).await {
                Ok(()) if under_way => pause(UNDER_WAY).await,
                Ok(()) => {}
                Err(error) => {
                    self.broke(&error);
                    pause(AGAIN).await;
                }
            }
        }
    }

    /// Makes one call to the cloud and adds its answer.
    async fn ask(&self, wait: Duration) -> Result<(), CloudError> {
        let (after, _) = self.seen().kept.read_on();
        let asked = timeout(wait + LIMIT, self.cloud.journal(after, wait)).await;
        let fresh = asked.unwrap_or_else(|_| Err(self.error(Problem::NoAnswer)))?;
        self.check_order(after, &fresh)?;
        self.merge(fresh);
        Ok(())
    }

    fn merge(&self, fresh: Vec<Entry>) {
        // Locked throughout, so that observers are called in the order of the entries.
        let observers = self.observers.lock().expect("no holder of this lock panics");
        let (mut news, mut over) = (false, Vec::new());
        {
            let mut seen = self.seen();
            news |= seen.broken.take().is_some();
            seen.heard = Instant::now();
            for entry in fresh {
                seen.operations.insert(entry.op);
                if seen.kept.take(entry.clone()) {
                    news = true;
                    over.extend(is_over(&entry).then_some(entry));
                }
            }
        }
        over.iter().for_each(|entry| observers.iter().for_each(|observer| observer(entry)));
        if news {
            self.pulse.beat();
        }
    }

    /// Entries are numbered without gaps; anything else is an error of the cloud.
    fn check_order(&self, after: u64, fresh: &[Entry]) -> Result<(), CloudError> {
        match fresh.iter().zip(after + 1..).find(|(entry, expected)| entry.seq != *expected) {
            None => Ok(()),
            Some((entry, expected)) => Err(self
                .error(Problem::Nonsense)
                .caused_by(format!("expected entry {expected}, got entry {}", entry.seq))),
        }
    }

    fn error(&self, problem: Problem) -> CloudError {
        CloudError::new(self.cloud.driver(), READING_THE_JOURNAL, problem)
    }

    fn broke(&self, error: &CloudError) {
        tracing::debug!(error = chain(error), "the journal cannot be read");
        let news = {
            let mut seen = self.seen();
            let new = seen.broken.is_none();
            seen.broken = Some(failure(error));
            new
        };
        if news {
            self.pulse.beat();
        }
    }

    /// Reads, if the cloud answers.
    fn fresh<T>(&self, read: impl FnOnce(&Received) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let seen = self.seen();
        match &seen.broken {
            None => read(&seen),
            Some(why) => Err(seen.unheard(why)),
        }
    }
}

fn failure(error: &CloudError) -> ReadError {
    ReadError { text: chain(error), fatal: error.is_final() }
}

/// Whether the entry changed the load balancers or their auxiliaries.
pub fn is_lb_write(entry: &Entry) -> bool {
    entry.write
        && matches!(
            entry.op,
            Op::LbCreate | Op::LbUpdate | Op::LbDelete | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete
        )
}

mod recent;
#[cfg(test)]
mod tests;
