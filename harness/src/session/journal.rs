//! The cloud's journal as this process has seen it: fed by a long poll, and fit to be read only while that is heard.

use crate::check::chain;
use crate::cloud::{Cloud, CloudError, Entry, Op, Outcome, Problem, READING_THE_JOURNAL};
use crate::probe::{Pulse, ReadError, pause};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// How long one long poll stays open.
const LONG_POLL: Duration = Duration::from_secs(20);
/// How long the cloud may take for an answer, beyond what a long poll asks for.
const LIMIT: Duration = Duration::from_secs(10);
/// How often entries under way are looked at again: their outcome is still to come.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// How soon a broken poll is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// Is told each call to the cloud once, when it has ended.
pub type CallObserver = Box<dyn Fn(&Entry) + Send + Sync>;

/// A mirror of the journal. Clones are the same one.
#[derive(Clone)]
pub struct Journal {
    mirror: Arc<Mirror>,
    _task: Option<Arc<Follower>>,
}

/// Ends the long poll when nobody looks at the mirror any more.
struct Follower(JoinHandle<()>);

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
    seen: Mutex<Seen>,
    observers: Mutex<Vec<CallObserver>>,
}

struct Seen {
    entries: Vec<Entry>,
    /// When the cloud last answered.
    heard: Instant,
    /// What the poll ended with, since the cloud last answered.
    broken: Option<ReadError>,
}

impl Journal {
    /// Starts mirroring, beginning with all there is; beats `pulse` on each change. A driver without a journal gives one
    /// that every read of fails.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn follow(cloud: Cloud, pulse: Pulse) -> Result<Journal, CloudError> {
        let seen = Seen { entries: Vec::new(), heard: Instant::now(), broken: None };
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

    /// Hands every call that has ended, and each that ends from now on, to `observer`, once, in the order in which they
    /// are seen to end.
    pub fn observe(&self, observer: CallObserver) {
        let mut observers = self.mirror.observers.lock().expect("no holder of this lock panics");
        self.mirror.seen().entries.iter().filter(|entry| is_over(entry)).for_each(&observer);
        observers.push(observer);
    }

    /// The last position that was seen, however long ago: where a check begins to look.
    pub fn position(&self) -> u64 {
        self.mirror.seen().last()
    }

    /// The journal's position now; marks a moment for [`Journal::since`].
    ///
    /// # Errors
    /// As [`Journal::since`]: an old position would count what came before the moment as after it.
    pub fn mark(&self) -> Result<u64, ReadError> {
        self.mirror.fresh(Seen::last)
    }

    /// Entries after `mark` that fit, in order of arrival.
    ///
    /// # Errors
    /// While the cloud is not heard: what is known is the past then, and the error says since when and why.
    pub fn since(&self, mark: u64, fits: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, ReadError> {
        self.mirror.fresh(|seen| {
            let start = seen.entries.partition_point(|entry| entry.seq <= mark);
            seen.entries[start..].iter().filter(|entry| fits(entry)).cloned().collect()
        })
    }

    /// The same after asking the cloud itself for all there is up to now: the last read of a window in which nothing may
    /// happen, and every read outside a wait.
    ///
    /// # Errors
    /// When the cloud does not answer, or nonsense.
    pub async fn since_now(&self, mark: u64, fits: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, ReadError> {
        self.catch_up().await?;
        self.since(mark, fits)
    }

    /// Brings the mirror to the journal's end of now, by asking the cloud itself.
    ///
    /// # Errors
    /// When the cloud does not answer, or nonsense.
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        let mut last = 0;
        loop {
            let before = self.position();
            if let Err(error) = self.mirror.ask(Duration::ZERO).await {
                return Err(self.mirror.seen().unheard(&failure(&error)));
            }
            // A cloud may hand its journal out in parts, of which the last is smaller than those before. What came while it was
            // asked is not waited for: where calls never cease that would be for ever.
            let fresh = self.position().saturating_sub(before);
            if fresh == 0 || fresh < last {
                return Ok(());
            }
            last = fresh;
        }
    }
}

impl Seen {
    fn last(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.seq)
    }

    /// Where to read on: before the first entry under way, else after the last; and whether one is under way.
    fn read_on(&self) -> (u64, bool) {
        match self.entries.iter().find(|entry| !is_over(entry)) {
            Some(first) => (first.seq - 1, true),
            None => (self.last(), false),
        }
    }

    /// That the cloud is not heard: since when and why.
    fn unheard(&self, why: &ReadError) -> ReadError {
        let silent = self.heard.elapsed().as_secs_f64();
        let text = format!("the cloud's journal was last heard {silent:.1}s ago: {}", why.text);
        ReadError { text, fatal: why.fatal }
    }

    /// Takes an entry in; says whether anything is new.
    fn take(&mut self, entry: Entry) -> bool {
        match self.entries.binary_search_by_key(&entry.seq, |known| known.seq) {
            // One that was seen to end is not taken back: an answer may be older than the last one.
            Ok(at) if self.entries[at] == entry || is_over(&self.entries[at]) => return false,
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
        true
    }
}

impl Mirror {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("no holder of this lock panics")
    }

    async fn follow(&self) {
        loop {
            let under_way = self.seen().read_on().1;
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

    /// One call to the cloud, and what it answers taken in.
    async fn ask(&self, wait: Duration) -> Result<(), CloudError> {
        let (after, _) = self.seen().read_on();
        let asked = timeout(wait + LIMIT, self.cloud.journal(after, wait)).await;
        let fresh = asked.unwrap_or_else(|_| Err(self.error(Problem::NoAnswer)))?;
        self.check_order(after, &fresh)?;
        self.merge(fresh);
        Ok(())
    }

    fn merge(&self, fresh: Vec<Entry>) {
        // Held throughout, so that observers hear of the calls in the order in which they were taken in.
        let observers = self.observers.lock().expect("no holder of this lock panics");
        let (mut news, mut over) = (false, Vec::new());
        {
            let mut seen = self.seen();
            news |= seen.broken.take().is_some();
            seen.heard = Instant::now();
            for entry in fresh {
                if seen.take(entry.clone()) {
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

    /// Entries are numbered without gaps, so whatever is not right after the last is nonsense.
    fn check_order(&self, after: u64, fresh: &[Entry]) -> Result<(), CloudError> {
        match fresh.iter().zip(after + 1..).find(|(entry, expected)| entry.seq != *expected) {
            None => Ok(()),
            Some((entry, expected)) => Err(self
                .error(Problem::Nonsense)
                .caused_by(format!("entry {} came where entry {expected} is due", entry.seq))),
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

    /// Reads, provided that the cloud is heard.
    fn fresh<T>(&self, read: impl FnOnce(&Seen) -> T) -> Result<T, ReadError> {
        let seen = self.seen();
        match &seen.broken {
            None => Ok(read(&seen)),
            Some(why) => Err(seen.unheard(why)),
        }
    }
}

fn failure(error: &CloudError) -> ReadError {
    ReadError { text: chain(error), fatal: error.is_final() }
}

fn is_over(entry: &Entry) -> bool {
    entry.outcome != Outcome::UnderWay
}

/// An entry in one line, as a failure or the evidence shows it.
pub fn show_entry(entry: &Entry) -> String {
    let outcome = show_outcome(&entry.outcome);
    let by = entry.credential.as_deref().unwrap_or("unknown credential");
    let unknown = entry.unknown.as_ref().map(|what| format!(", unknown to the cloud: {what}"));
    let (seconds, unknown) = (entry.at_ms as f64 / 1000.0, unknown.unwrap_or_default());
    format!("#{} {seconds:.3}s {by}: {} -> {outcome}{unknown}", entry.seq, entry.request)
}

/// What became of a call, in words.
pub(super) fn show_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered { status } => status.to_string(),
        Outcome::Faulted { status: Some(status), .. } => format!("{status} (fault)"),
        Outcome::Faulted { status: None, .. } => "no answer (fault)".to_owned(),
        Outcome::UnderWay => "under way".to_owned(),
        Outcome::Abandoned => "abandoned by the caller".to_owned(),
    }
}

/// Whether the entry changed the load balancers or what belongs to them.
pub fn is_lb_write(entry: &Entry) -> bool {
    entry.write
        && matches!(
            entry.op,
            Op::LbCreate | Op::LbUpdate | Op::LbDelete | Op::AuxCreate | Op::AuxUpdate | Op::AuxDelete
        )
}

#[cfg(test)]
mod tests;
