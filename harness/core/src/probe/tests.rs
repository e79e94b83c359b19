//! Waits with a paused clock.

use super::*;
use crate::check::{CheckError, SubjectName};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, advance};

const S: fn(u64) -> Duration = Duration::from_secs;

fn promise(span: Span) -> Promise {
    let subject = SubjectName { kind: "Counter", name: "c".into(), uid: Some("u1".into()) };
    Promise { text: "Counter c is two".into(), subject: Some(subject), expected: "2".into(), span }
}

fn is(wanted: u64) -> Matcher<u64> {
    holds("is it", move |n: &u64| *n == wanted)
}

/// Waits for what a read yields.
async fn wait(
    span: Span,
    wanted: u64,
    read: impl AsyncFnMut(ReadSource) -> Result<u64, ReadError>,
) -> Result<(), CheckError> {
    Probe::new(Pulse::default()).wait(&promise(span), &mut Reading::new(read, &is(wanted))).await
}

fn text(outcome: Result<(), CheckError>) -> String {
    match outcome {
        Ok(()) => "kept".to_owned(),
        Err(CheckError::Violation(violation)) => format!("broken\n{violation}"),
        Err(CheckError::Blocked { by, seen }) => format!("blocked by {}\n{seen}", by.check()),
        Err(CheckError::Error(text)) => format!("undetermined\n{text}"),
        Err(CheckError::NotObservable(text)) => format!("not observable\n{text}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_the_first_match() {
    let (began, mut reads) = (Instant::now(), 0);
    let counts = async |_| {
        reads += 1;
        Ok(reads)
    };
    assert_eq!(text(wait(Span::Within(S(60)), 3, counts).await), "kept");
    assert!(began.elapsed() < S(3));
}

#[tokio::test(start_paused = true)]
async fn a_broken_promise_says_of_what_expected_seen_and_waited() {
    insta::assert_snapshot!(text(wait(Span::Within(S(3)), 2, async |_| Ok(1)).await), @r"
    broken
    expected:  2
    last seen: 1
    promise:   Counter c is two
    subject:   Counter c (uid u1)
    waited:    3.0s, 7 reads, at most 0.5s apart
    ");
}

#[tokio::test(start_paused = true)]
async fn never_ends_a_wait_at_once_and_a_refused_read_is_the_environments() {
    let never = matcher::<u64, ()>("grows", |_| Observation::Impossible("it shrinks".into()));
    let probe = Probe::new(Pulse::default());
    let outcome = probe.wait(&promise(Span::Within(S(60))), &mut Reading::new(async |_| Ok(1), &never)).await;
    assert!(text(outcome).contains("last seen: 1 (it shrinks)\npromise:   "));
    let refused = async |_| Err(ReadError { text: "403".into(), fatal: true });
    assert_eq!(
        text(wait(Span::Within(S(60)), 2, refused).await),
        "undetermined\ncould not determine whether 'Counter c is two' was fulfilled: Counter c (uid u1): 403 (waited 0.0s, 0 reads, at most 0.0s apart)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lasting_claim_is_watched_for_the_whole_window() {
    let began = Instant::now();
    assert_eq!(text(wait(Span::Throughout(S(20)), 1, async |_| Ok(1)).await), "kept");
    assert!(began.elapsed() >= S(20));
    let mut reads = 0;
    let grows = async |_| {
        reads += 1;
        Ok(reads)
    };
    let broken = text(wait(Span::Throughout(S(20)), 1, grows).await);
    assert!(broken.contains("expected:  for 20s: 2\nlast seen: 2\n"), "{broken}");
}

#[tokio::test(start_paused = true)]
async fn the_last_read_asks_the_origin() {
    // The copy does not change; the origin has changed, and that is what counts.
    let read = async |reach| Ok(if reach == ReadSource::Origin { 2 } else { 1 });
    assert_eq!(text(wait(Span::Within(S(10)), 2, read).await), "kept");
    assert!(text(wait(Span::Throughout(S(10)), 1, read).await).contains("last seen: 2"));
    let asked = Cell::new(Vec::new());
    let read = async |reach| {
        let mut all = asked.take();
        all.push(reach);
        asked.set(all);
        Ok(1)
    };
    assert_eq!(text(wait(Span::Throughout(S(2)), 1, read).await), "kept");
    let asked = asked.take();
    let (last, before) = asked.split_last().expect("something was read");
    assert_eq!(*last, ReadSource::Origin);
    assert!(before.iter().all(|reach| *reach == ReadSource::Cache));
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_older_than_the_wait_decides_nothing() {
    // The copy is outdated for a while; the origin was right all the time.
    let late = |reads: u32| {
        let mut looked = 0;
        async move |reach| {
            looked += u32::from(reach == ReadSource::Cache);
            Ok(if reach == ReadSource::Origin || looked > reads { 1 } else { 0 })
        }
    };
    assert_eq!(text(wait(Span::Throughout(S(10)), 1, late(3)).await), "kept");
    // Once it has caught up, it counts.
    let mut looked = 0;
    let breaks = async |reach| {
        looked += u32::from(reach == ReadSource::Cache);
        Ok(if reach == ReadSource::Cache && looked == 5 { 0 } else { 1 })
    };
    assert!(text(wait(Span::Throughout(S(10)), 1, breaks).await).contains("last seen: 0"));
    let never = matcher::<u64, ()>("is one", |n| match n {
        0 => Observation::Impossible("it is none".into()),
        _ => Observation::Matched(()),
    });
    let probe = Probe::new(Pulse::default());
    let mut reading = Reading::new(late(2), &never);
    assert_eq!(text(probe.wait(&promise(Span::Within(S(60))), &mut reading).await), "kept");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_state_at_the_end_is_undetermined() {
    let broken_watch = || ReadError::passing("the watch on Nodes is broken");
    for span in [Span::Within(S(4)), Span::Throughout(S(4))] {
        let said = text(wait(span, 2, async |_| Err(broken_watch())).await);
        assert!(
            said.contains("the state could not be read at the end: the watch on Nodes is broken"),
            "{said}"
        );
        assert!(
            said.contains("9 read errors (last: the watch on Nodes is broken, 0.0s before the end)"),
            "{said}"
        );
    }
    // The origin replaces a broken copy, and the text says so.
    let read = async |reach| if reach == ReadSource::Origin { Ok(1) } else { Err(broken_watch()) };
    let said = text(wait(Span::Within(S(3)), 2, read).await);
    assert!(said.starts_with("undetermined"), "nothing was read for most of the time: {said}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stalls_is_not_the_ccms_fault() {
    // Each look takes as long as the machine is stalled.
    let stalled_by = |stall: u64| {
        async move |_| {
            advance(S(stall)).await;
            Ok(1)
        }
    };
    let said = text(wait(Span::Within(S(10)), 2, stalled_by(6)).await);
    assert!(said.contains("the state could not be read for more than half of the time"), "{said}");
    assert!(said.contains("at most 6"), "{said}");
    assert!(text(wait(Span::Within(S(10)), 2, stalled_by(1)).await).starts_with("broken"));
    assert!(text(wait(Span::Throughout(S(10)), 1, stalled_by(6)).await).starts_with("undetermined"));
    assert_eq!(text(wait(Span::Throughout(S(10)), 1, stalled_by(1)).await), "kept");
    // What is seen in spite of that counts.
    assert_eq!(text(wait(Span::Within(S(10)), 1, stalled_by(6)).await), "kept");
}

#[tokio::test(start_paused = true)]
async fn a_window_in_which_the_machine_stalls_begins_again() {
    // The first reads take as long as the machine is stalled; then the values follow.
    let stalled_then = |value: u64| {
        let mut reads = 0;
        async move |_| {
            reads += 1;
            if reads <= 2 {
                advance(S(6)).await;
            }
            Ok(if reads <= 4 { 1 } else { value })
        }
    };
    assert_eq!(text(wait(Span::Throughout(S(10)), 1, stalled_then(1)).await), "kept");
    let said = text(wait(Span::Throughout(S(10)), 1, stalled_then(2)).await);
    assert!(said.starts_with("undetermined") && said.contains("and later the claim did not hold"), "{said}");
}

#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Observer for Notes {
    fn begins(&self, wait: u32, promise: &Promise) {
        self.0.lock().expect("fine").push(format!("{wait} begins: {}", promise.text));
    }
    fn ends(&self, wait: u32, _: &Promise, ended: &Ended) {
        self.0.lock().expect("fine").push(format!("{wait} {:?}: {:?}", ended.ending, ended.seen));
    }
}

#[tokio::test(start_paused = true)]
async fn each_wait_is_reported_to_an_observer() {
    let notes = Notes::default();
    let probe = Probe::new(Pulse::default()).observed_by(Box::new(notes.clone()));
    for wanted in [1, 2] {
        let _ =
            probe.wait(&promise(Span::Within(S(1))), &mut Reading::new(async |_| Ok(1), &is(wanted))).await;
    }
    assert_eq!(
        *notes.0.lock().expect("fine"),
        ["1 begins: Counter c is two", "1 Met: None", "2 begins: Counter c is two", "2 Broken: Some(\"1\")"]
    );
    assert_eq!(probe.used_percent(), Some(100));
}
