//! The progress of a run: what has ended, what is running, and how long the rest takes.

use crate::forecast::{Forecast, about};
use crate::ready_environment::is_trouble;
use harness_core::ledger::{Entry, INTERRUPTED, Outcome};
use harness_report::alike;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this number of seconds on, the pace so far says how long the rest takes.
const ENOUGH_S: f64 = 5.0;
/// How much faster or slower than estimated a run is assumed to be at most. Each failed wait takes its whole time limit.
const PACE: (f64, f64) = (0.5, 20.0);
/// Width of the bar, in columns.
const BAR: usize = 10;
/// From how many columns on there is a bar. Without one the line has about 95 columns at most.
const WIDE: usize = 110;

/// The state of all checks, shared by those that run them and the line that shows it.
pub(super) struct Board {
    forecast: Forecast,
    /// The estimate of the time for all checks.
    whole: Duration,
    total: usize,
    began: Instant,
    /// From this number of failures on no further check starts.
    max_fail: Option<usize>,
    state: Mutex<State>,
    showing: Mutex<()>,
}

struct State {
    running: Vec<(String, Instant)>,
    ended: BTreeSet<String>,
    /// The checks and rows that have blocked others, and how many.
    obstacles: BTreeMap<String, usize>,
    passed: usize,
    failed: usize,
    blocked: usize,
    /// Checks that ended in another way: not observable, an error of the environment, interrupted.
    others: usize,
    /// The estimate of the time that was left at a moment, at the pace of the estimate.
    left: (Instant, Duration),
}

impl Board {
    pub(super) fn new(forecast: Forecast, max_fail: Option<usize>, began: Instant) -> Board {
        let whole = forecast.all();
        let left = (began, whole);
        let state = State {
            running: Vec::new(),
            ended: BTreeSet::new(),
            obstacles: BTreeMap::new(),
            passed: 0,
            failed: 0,
            blocked: 0,
            others: 0,
            left,
        };
        Board {
            total: forecast.checks.len(),
            whole,
            forecast,
            began,
            max_fail,
            state: Mutex::new(state),
            showing: Mutex::new(()),
        }
    }

    /// A check starts.
    pub(super) fn begin(&self, id: &str) {
        self.lock().running.push((id.to_owned(), Instant::now()));
    }

    /// Waits until no other check is being shown.
    pub(super) fn turn_to_show(&self) -> MutexGuard<'_, ()> {
        self.showing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many checks before this one were kept from being judged by the same thing: a claim that the CCM has broken, or an
    /// error of the environment. 0 for a check that was judged.
    pub(super) fn unjudged_before(&self, entry: &Entry) -> usize {
        let obstacle = match &entry.outcome {
            Outcome::Blocked { by, .. } => by.clone(),
            Outcome::Error { message } if message != INTERRUPTED => {
                // Names and numbers differ between checks that met the same one.
                alike(message.lines().next().unwrap_or_default())
            }
            _ => return 0,
        };
        let mut state = self.lock();
        let count = state.obstacles.entry(obstacle).or_default();
        *count += 1;
        *count - 1
    }

    /// A check has ended. Returns how many have.
    pub(super) fn end(&self, entry: &Entry, now: Instant) -> usize {
        let mut state = self.lock();
        state.running.retain(|(id, _)| *id != entry.id);
        state.ended.insert(entry.id.clone());
        match &entry.outcome {
            Outcome::Pass => state.passed += 1,
            Outcome::Blocked { .. } => state.blocked += 1,
            Outcome::Error { message } if message == INTERRUPTED => state.others += 1,
            outcome if is_trouble(outcome) => state.failed += 1,
            _ => state.others += 1,
        }
        state.left = (now, self.forecast.of(|id| !state.ended.contains(id)));
        state.ended.len()
    }

    /// How long the rest probably takes: as estimated, but as much slower or faster as the run has been so far.
    fn left(&self, (at, rest): (Instant, Duration), now: Instant) -> Duration {
        let since = now.saturating_duration_since(at);
        let estimated = self.whole.saturating_sub(rest).as_secs_f64();
        let spent = now.saturating_duration_since(self.began).as_secs_f64();
        let pace = if estimated < ENOUGH_S { 1.0 } else { (spent / estimated).clamp(PACE.0, PACE.1) };
        rest.mul_f64(pace).saturating_sub(since)
    }

    /// Why no further check starts, if none does.
    pub(super) fn stopped(&self) -> Option<String> {
        let most = self.max_fail?;
        let state = self.lock();
        let failed = state.failed + state.blocked;
        let what = if state.blocked > 0 { "failed or were blocked" } else { "failed" };
        (failed >= most).then(|| format!("not started, as {failed} {what} before it (--max-fail {most})"))
    }

    /// Everything in a line of at most so many columns. The slowest running check and a bar are shown if there is room.
    pub(super) fn line(&self, columns: usize, now: Instant) -> String {
        let state = self.lock();
        let (done, total) = (state.ended.len(), self.total);
        let spent = now.saturating_duration_since(self.began);
        let left = match self.left(state.left, now) {
            _ if done >= total => String::new(),
            Duration::ZERO => ", longer than estimated".to_owned(),
            left => format!(", about {} left", about(left.max(Duration::from_secs(1)))),
        };
        let blocked = match state.blocked {
            0 => String::new(),
            blocked => format!(" {blocked} blocked"),
        };
        let others = match state.others {
            0 => String::new(),
            others => format!(" {others} not judged"),
        };
        let slowest = state.running.iter().min_by_key(|(_, since)| *since);
        let slowest = slowest.map_or_else(String::new, |(id, since)| {
            format!(", {id} {}", about(now.saturating_duration_since(*since)))
        });
        let with = |passed: &str, left: &str| {
            format!(
                "{done}/{total} {} running{passed} {} failed{blocked}{others}, {}{left}",
                state.running.len(),
                state.failed,
                about(spent)
            )
        };
        let passed = format!(" {} passed", state.passed);
        // What is running is worth more than what is over, and a part of an id is worth nothing.
        let forms = [
            with(&passed, &left) + &slowest,
            with("", &left) + &slowest,
            with(&passed, &left),
            with(&passed, ""),
        ];
        let [.., shortest] = &forms;
        // Whether there is a bar depends on the terminal only, so that it does not come and go.
        let bar = if columns >= WIDE { BAR + 3 } else { 0 };
        let room = columns.saturating_sub(bar);
        let mut line = forms.iter().find(|line| line.chars().count() <= room).unwrap_or(shortest).to_owned();
        if bar > 0 {
            let full = (BAR * done).checked_div(total).unwrap_or(BAR);
            line = format!("[{}{}] {line}", "=".repeat(full), " ".repeat(BAR - full));
        }
        line.chars().take(columns).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_config::BackendKind;
    use harness_config::Choice;
    use harness_core::check::Level;
    use harness_testkit::Check;

    use crate::planned::Planned;

    const ONE: Check =
        Check::own("NODE-INIT-01", "a claim", "a source", |_| Box::pin(async { Ok(()) })).takes(10);
    const TWO: Check =
        Check::own("SVC-UPD-01.node-port", "a claim", "a source", |_| Box::pin(async { Ok(()) })).takes(10);

    fn board(max_fail: Option<usize>, began: Instant) -> Board {
        let planned = |check: &'static Check| Planned {
            suite: "suite",
            check,
            level: Level::Must,
            choice: Choice::Selected,
            elsewhere: false,
            takes_s: check.takes_s,
        };
        let checks = vec![planned(&ONE), planned(&TWO)];
        let forecast = Forecast { checks, lanes: 1, at_once: 8, workers: 1, backend: BackendKind::Embedded };
        Board::new(forecast, max_fail, began)
    }

    fn entry(id: &str, outcome: Outcome) -> Entry {
        Entry::sample(id, Level::Must, outcome)
    }

    #[test]
    fn a_line_names_counts_times_and_the_slowest_check() {
        let began = Instant::now();
        let board = board(None, began);
        board.begin("NODE-INIT-01");
        board.begin("SVC-UPD-01.node-port");
        let at = |seconds: u64| began + Duration::from_millis(seconds * 1000 + 500);
        assert_eq!(
            board.line(77, at(4)),
            "0/2 2 running 0 passed 0 failed, 4 s, about 7 s left, NODE-INIT-01 4 s"
        );
        assert_eq!(board.end(&entry("NODE-INIT-01", Outcome::Pass), at(10)), 1);
        assert!(board.line(109, at(12)).starts_with("1/2 "), "no bar, however short the line is");
        let line = board.line(110, at(12));
        assert!(line.starts_with("[=====     ] 1/2 1 running 1 passed 0 failed, 12 s, about "), "{line}");
        assert!(line.ends_with(" left, SVC-UPD-01.node-port 12 s"), "{line}");
        let without_time = board.line(40, at(12));
        assert_eq!(without_time, "1/2 1 running 1 passed 0 failed, 12 s");
        for columns in 0..130 {
            assert!(board.line(columns, at(100)).chars().count() <= columns);
        }
    }

    #[test]
    fn blocked_checks_are_counted_apart_and_an_exceeded_estimate_is_named() {
        let began = Instant::now();
        let board = board(None, began);
        let blocked = Outcome::Blocked { by: "OBS-10".to_owned(), message: "m".to_owned() };
        board.end(&entry("NODE-INIT-01", blocked), began);
        board.begin("SVC-UPD-01.node-port");
        let line = board.line(79, began + Duration::from_secs(100));
        assert!(line.starts_with("1/2 1 running 0 passed 0 failed 1 blocked, "), "{line}");
        assert!(line.contains(", longer than estimated"), "{line}");
    }

    #[test]
    fn no_check_starts_after_the_last_failure_that_is_accepted() {
        let now = Instant::now();
        let board = board(Some(1), now);
        board.end(&entry("NODE-INIT-01", Outcome::Pass), now);
        assert_eq!(board.stopped(), None);
        board.end(&entry("SVC-UPD-01.node-port", Outcome::Fail { message: "m".to_owned() }), now);
        let why = board.stopped().expect("it is stopped");
        assert_eq!(why, "not started, as 1 failed before it (--max-fail 1)");
    }

    #[test]
    fn errors_that_differ_in_names_and_numbers_are_the_same_obstacle() {
        let board = board(None, Instant::now());
        let error = |message: &str| entry("A-01", Outcome::Error { message: message.to_owned() });
        let first = error("Pod ccm-a-7x9 did not lead within 60 s\n  its last lines:\n    refused");
        let again = error("Pod ccm-b-2k4 did not lead within 61 s\n  its last lines:\n    refused");
        let other = error("no cluster");
        let counts = [&first, &again, &other, &again].map(|one| board.unjudged_before(one));
        assert_eq!(counts, [0, 1, 0, 2]);
        assert_eq!(board.unjudged_before(&entry("A-02", Outcome::Pass)), 0);
    }
}
