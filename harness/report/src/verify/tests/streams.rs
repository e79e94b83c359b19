//! Streams of events that were edited, and streams that contradict themselves.

use super::{refused, report_of, said, stream};
use crate::to_yaml;
use harness_core::events::{Event, Fold, Payload};
use harness_core::ledger::{FIRST_TRY, Outcome};

#[test]
fn events_edited_without_the_report() {
    let mut events = stream();
    if let Payload::PromiseBroken(promise) = &mut events[6].event {
        promise.seen = "no taint".to_owned();
    }
    refused(
        &said(&report_of(&stream()), &events, None),
        "the stream of events is not the one the report was made of: it was 12 events, sha256 ",
    );
    let mut events = stream();
    events.remove(6);
    refused(&said(&report_of(&stream()), &events, None), "this one is 11 events");
}

#[test]
fn events_edited_and_the_report_created_again() {
    let mut events = stream();
    if let Payload::CheckEnded { ended, .. } = &mut events[7].event {
        *ended = Outcome::Pass;
    }
    refused(
        &said(&report_of(&events), &events, None),
        "the stream of events contradicts itself: check A-02 passes, and its promise 'the taint goes' was broken",
    );
    let mut events = stream();
    events.remove(3);
    refused(&said(&report_of(&events), &events, None), "check A-01 passes and has not begun");
    let mut events = stream();
    events.insert(8, events[4].clone());
    refused(&said(&report_of(&events), &events, None), "check A-01 ends twice");
    let mut events = stream();
    events.insert(1, events[0].clone());
    refused(&said(&report_of(&events), &events, None), "it holds the beginning of 2 runs");
}

#[test]
fn a_promise_broken_before_a_check_was_judged_again_does_not_count() {
    let why = "the environment failed it: the API server did not answer for 3 s";
    let with = |repeated: bool, first_try: Option<&str>| {
        let mut events = stream();
        if let Payload::CheckEnded { ended, facts, .. } = &mut events[7].event {
            *ended = Outcome::Pass;
            facts.extend(first_try.map(|why| (FIRST_TRY.to_owned(), why.to_owned())));
        }
        if repeated {
            let again = Payload::CheckRepeated { why: why.to_owned() };
            events.insert(7, Event { event: again, ..events[6].clone() });
        }
        said(&report_of(&events), &events, None)
    };
    assert_eq!(with(true, Some(why)), Vec::<String>::new());
    refused(&with(true, None), "check A-02 was judged again, and its end does not say why");
    refused(&with(true, Some("another reason")), "check A-02 was judged again, and its end does not say why");
    refused(&with(false, Some(why)), "check A-02 passes, and its promise 'the taint goes' was broken");
}

#[test]
fn a_report_that_names_no_stream() {
    let mut ledger = Fold::of(&stream()).ledger();
    ledger.stream = None;
    let text = to_yaml(&ledger).expect("YAML");
    refused(&said(&text, &stream(), None), "is not the one the report was made of: the report names none");
}
