//! `eventually` and `consistently`.

use super::{Judge, Observed, Pulse, Seen};
use crate::check::{Stop, Unmet};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// A read that failed. Inside a wait it is remembered and reading goes on, unless no later read can succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ReadError {
    /// What failed, with its cause.
    pub text: String,
    /// Whether trying again is pointless (401, 403).
    pub fatal: bool,
}

impl ReadError {
    /// A failure that may pass.
    pub fn passing(text: impl Into<String>) -> ReadError {
        ReadError { text: text.into(), fatal: false }
    }
}

/// Waits on behalf of one check and remembers how much of its limits it used.
#[derive(Debug)]
pub struct Probe {
    pulse: Pulse,
    /// The longest time between two reads while nothing changes.
    pub idle: Duration,
    /// The shortest time between two reads however much changes.
    pub spacing: Duration,
    used_percent: Mutex<Option<u32>>,
}

/// How a wait went, for the text of its end.
struct Tally {
    began: Instant,
    reads: u64,
    errors: u64,
    last_error: Option<(Instant, ReadError)>,
}

impl Tally {
    fn waited(&self) -> String {
        let now = Instant::now();
        let mut text = format!("{:.1}s, {} reads", (now - self.began).as_secs_f64(), self.reads);
        if let Some((at, error)) = &self.last_error {
            let ago = (now - *at).as_secs_f64();
            text.push_str(&format!(
                ", {} read errors (last: {error}, {ago:.1}s before the end)",
                self.errors
            ));
        }
        text
    }
}

impl Probe {
    /// A probe that reads again whenever `pulse` beats.
    pub fn new(pulse: Pulse) -> Probe {
        Probe {
            pulse,
            idle: Duration::from_millis(500),
            spacing: Duration::from_millis(30),
            used_percent: Mutex::new(None),
        }
    }

    /// The largest share of a limit any `eventually` of this probe has used, in percent.
    pub fn used_percent(&self) -> Option<u32> {
        *self.used_percent.lock().expect("no holder of this lock panics")
    }

    /// Reads until the judge says yes; the value it yields is returned.
    ///
    /// The first read happens at once, one last read at the deadline, and each read is bounded by what is left.
    ///
    /// # Errors
    /// [`Stop::Unmet`] with the last observation when the limit passes or the judge says never;
    /// [`Stop::Error`] when not a single read succeeded, or a read failed for good.
    pub async fn eventually<O: Observed, T>(
        &self,
        promise: &str,
        limit: Duration,
        mut read: impl AsyncFnMut() -> Result<O, ReadError>,
        judge: Judge<O, T>,
    ) -> Result<T, Stop> {
        let mut tally = Tally { began: Instant::now(), reads: 0, errors: 0, last_error: None };
        let deadline = tally.began + limit;
        let mut beats = self.pulse.listen();
        let mut last: Option<(O, String)> = None;
        loop {
            beats.mark_unchanged();
            let closing = Instant::now() >= deadline;
            if let Some(observation) = self.read_once(&mut read, &mut tally, deadline).await? {
                match judge.judge(&observation) {
                    Seen::Yes(value) => {
                        self.note_use(tally.began.elapsed(), limit);
                        tracing::debug!(promise, took = ?tally.began.elapsed(), "kept");
                        return Ok(value);
                    }
                    Seen::Never(why) => {
                        return Err(unmet(promise, judge.expected(), Some(&(observation, why)), &tally));
                    }
                    Seen::NotYet(why) => last = Some((observation, why)),
                }
            }
            if closing {
                self.note_use(limit, limit);
                return Err(unmet(promise, judge.expected(), last.as_ref(), &tally));
            }
            let _ = timeout_at(deadline, self.next_beat(&mut beats)).await;
        }
    }

    /// Reads for the whole window and demands that the judge says yes each time.
    ///
    /// # Errors
    /// [`Stop::Unmet`] at the first moment the promise is broken; [`Stop::Error`] when not a single read succeeded.
    pub async fn consistently<O: Observed>(
        &self,
        promise: &str,
        window: Duration,
        mut read: impl AsyncFnMut() -> Result<O, ReadError>,
        judge: Judge<O, ()>,
    ) -> Result<(), Stop> {
        let mut tally = Tally { began: Instant::now(), reads: 0, errors: 0, last_error: None };
        let deadline = tally.began + window;
        let mut beats = self.pulse.listen();
        let mut seen_any = false;
        loop {
            beats.mark_unchanged();
            let closing = Instant::now() >= deadline;
            if let Some(observation) = self.read_once(&mut read, &mut tally, deadline).await? {
                seen_any = true;
                match judge.judge(&observation) {
                    Seen::Yes(()) => {}
                    Seen::NotYet(why) | Seen::Never(why) => {
                        let expected = format!("for {}: {}", seconds(window), judge.expected());
                        return Err(unmet(promise, &expected, Some(&(observation, why)), &tally));
                    }
                }
            }
            if closing {
                if seen_any {
                    return Ok(());
                }
                return Err(Stop::Error(format!("{promise}: nothing could be read in {}", tally.waited())));
            }
            let _ = timeout_at(deadline, self.next_beat(&mut beats)).await;
        }
    }

    async fn read_once<O>(
        &self,
        read: &mut impl AsyncFnMut() -> Result<O, ReadError>,
        tally: &mut Tally,
        deadline: Instant,
    ) -> Result<Option<O>, Stop> {
        tally.reads += 1;
        // A read at the deadline still gets a moment to be answered.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(2));
        let error = match timeout(left.min(Duration::from_secs(10)), read()).await {
            Ok(Ok(observation)) => return Ok(Some(observation)),
            Ok(Err(error)) => error,
            Err(_) => ReadError::passing("the read was not answered in time"),
        };
        if error.fatal {
            return Err(Stop::Error(error.text));
        }
        tally.errors += 1;
        tally.last_error = Some((Instant::now(), error));
        Ok(None)
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

fn unmet<O: Observed>(promise: &str, expected: &str, last: Option<&(O, String)>, tally: &Tally) -> Stop {
    let seen = match last {
        None => return Stop::Error(format!("{promise}: nothing could be read in {}", tally.waited())),
        Some((observation, why)) if why.is_empty() => observation.observed(),
        Some((observation, why)) => format!("{} ({why})", observation.observed()),
    };
    let unmet = Unmet::new(promise, expected, seen);
    Stop::Unmet(Box::new(Unmet { waited: Some(tally.waited()), ..unmet }))
}

fn seconds(duration: Duration) -> String {
    format!("{:.0}s", duration.as_secs_f64())
}

/// Waits for a fact of the machinery itself (a pod gone, a container up), outside any check.
///
/// `read` answers `Ok(Some(value))` when the fact is there, `Ok(None)` when not yet; its words of what it last saw are
/// kept in `seen`.
///
/// # Errors
/// The text says what was waited for, how long, and what was last seen.
pub async fn poll<T>(
    what: &str,
    limit: Duration,
    interval: Duration,
    mut read: impl AsyncFnMut(&mut String) -> Result<Option<T>, ReadError>,
) -> Result<T, ReadError> {
    let began = Instant::now();
    let mut seen = String::from("nothing");
    let mut errors = 0_u64;
    loop {
        let left = (began + limit).saturating_duration_since(Instant::now());
        match timeout(left.max(Duration::from_secs(1)), read(&mut seen)).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) => {}
            Ok(Err(error)) if error.fatal => return Err(error),
            Ok(Err(error)) => {
                errors += 1;
                seen = format!("read error {errors}: {error}");
            }
            Err(_) => seen = format!("the read was not answered in time; before: {seen}"),
        }
        if began.elapsed() >= limit {
            return Err(ReadError::passing(format!(
                "{what} did not come true in {}: last seen: {seen}",
                seconds(limit)
            )));
        }
        super::pause(interval.min((began + limit).saturating_duration_since(Instant::now()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{holds, judge};
    use super::*;

    fn probe() -> Probe {
        Probe::new(Pulse::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_at_the_first_match() {
        let mut reads = 0_u64;
        let yes = judge("three", |n: &u64| if *n == 3 { Seen::Yes(*n) } else { Seen::NotYet(String::new()) });
        let got = probe()
            .eventually(
                "it counts",
                Duration::from_secs(60),
                async || {
                    reads += 1;
                    Ok(reads)
                },
                yes,
            )
            .await;
        assert_eq!(got.expect("counts to three"), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_says_promise_expected_seen_and_waited() {
        let probe = probe();
        let stop = probe
            .eventually(
                "it is two",
                Duration::from_secs(3),
                async || Ok(1_u64),
                holds("2", |n: &u64| *n == 2),
            )
            .await
            .expect_err("one is not two");
        let Stop::Unmet(unmet) = stop else { panic!("not a failure: {stop:?}") };
        assert_eq!(
            (unmet.promise.as_str(), unmet.expected.as_str(), unmet.seen.as_str()),
            ("it is two", "2", "1")
        );
        assert!(unmet.waited.as_deref().is_some_and(|w| w.starts_with("3.0s, ")), "{:?}", unmet.waited);
        assert_eq!(probe.used_percent(), Some(100));
    }

    #[tokio::test(start_paused = true)]
    async fn never_stops_at_once_and_refused_reads_are_the_environments() {
        let never = judge::<u64, ()>("more", |_| Seen::Never("it shrinks".into()));
        let stop = probe().eventually("p", Duration::from_secs(60), async || Ok(1_u64), never).await;
        assert!(matches!(&stop, Err(Stop::Unmet(u)) if u.seen == "1 (it shrinks)"), "{stop:?}");
        let refused = || ReadError { text: "403".into(), fatal: true };
        let stop = probe()
            .eventually("p", Duration::from_secs(60), async || Err::<u64, _>(refused()), holds("x", |_| true))
            .await;
        assert!(matches!(&stop, Err(Stop::Error(text)) if text == "403"), "{stop:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn consistently_reports_the_first_breach_and_runs_the_whole_window() {
        let began = Instant::now();
        let still = || holds("1", |n: &u64| *n == 1);
        let kept = probe().consistently("p", Duration::from_secs(20), async || Ok(1_u64), still()).await;
        assert!(kept.is_ok());
        assert!(began.elapsed() >= Duration::from_secs(20));
        let mut reads = 0_u64;
        let broken = probe()
            .consistently(
                "p",
                Duration::from_secs(20),
                async || {
                    reads += 1;
                    Ok(reads)
                },
                still(),
            )
            .await;
        assert!(matches!(&broken, Err(Stop::Unmet(u)) if u.seen == "2"), "{broken:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_without_a_single_read_is_an_error() {
        let stop = probe()
            .eventually(
                "p",
                Duration::from_secs(2),
                async || Err::<u64, _>(ReadError::passing("503")),
                holds("x", |_| true),
            )
            .await;
        assert!(matches!(&stop, Err(Stop::Error(text)) if text.contains("503")), "{stop:?}");
    }
}
