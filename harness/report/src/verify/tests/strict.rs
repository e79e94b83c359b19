//! Forgeries that are close to the original: the end of a long text, an unused value, an event after the end.

use super::super::sha256_digest;
use super::{DIGEST, edited, refused, report_of, said, stream, stream_of, subject};
use crate::to_yaml;
use harness_core::events::{Event, Fold, Payload};
use harness_core::ledger::{Outcome, StageTime, Subject};

#[test]
fn an_image_is_named_by_its_sha_256_and_by_nothing_else() {
    let hex = DIGEST.trim_start_matches("sha256:");
    for asked in
        [DIGEST.to_owned(), format!("registry.example/acme:v1@{DIGEST}"), DIGEST.replace("aaaa", "AAAA")]
    {
        assert_eq!(sha256_digest(&asked).as_deref(), Ok(DIGEST), "{asked}");
    }
    for asked in [
        "",
        hex,
        "sha256:",
        "registry.example/acme:v1",
        &format!("md5:{hex}"),
        &format!("md5:{}", &hex[..32]),
        &format!("sha512:{hex}{hex}"),
        &format!("SHA256:{hex}"),
        &format!("sha256:{}", &hex[1..]),
        &format!("sha256:{hex}0"),
        &format!("sha256:g{}", &hex[1..]),
        &format!("sha256: {}", &hex[1..]),
        &format!("{DIGEST}@"),
    ] {
        assert!(sha256_digest(asked).is_err_and(|why| why.contains("64 hexadecimal digits")), "{asked}");
    }
    // A report with a digest of another algorithm matches no image that a caller can request.
    let events = stream_of(Subject { image_digest: DIGEST.replace("sha256", "md5"), ..subject() });
    refused(&said(&report_of(&events), &events, Some(DIGEST)), "it is about the image md5:");
}

/// A stream whose check A-02 failed with this text and these facts.
fn stream_with(message: &str, fact: &str) -> Vec<Event> {
    let mut events = stream();
    let Payload::CheckEnded { ended, facts, .. } = &mut events[7].event else { panic!("the end of A-02") };
    *ended = Outcome::Fail { message: message.to_owned() };
    facts.insert("calls".to_owned(), fact.to_owned());
    events
}

#[test]
fn the_end_of_a_long_text_counts_as_much_as_its_beginning() {
    let long = "promise: the taint goes; ".repeat(40);
    let seen = format!("{long}last seen: a taint");
    let events = stream_with(&seen, &seen);
    let text = report_of(&events);
    assert_eq!(said(&text, &events, None), [""; 0]);
    let at =
        |key: &str| text.find(key).map(|at| at + text[at..].find("a taint").expect("the end")).expect(key);
    for key in ["  reason: ", "    calls: "] {
        let mut edited = text.clone();
        edited.replace_range(at(key)..at(key) + "a taint".len(), "nothing amiss");
        let what = if key.contains("reason") { "reason of A-02 is" } else { "facts of A-02 is" };
        let said = said(&edited, &events, None);
        refused(&said, what);
        assert!(said.iter().any(|one| one.contains("a taint") && one.contains("nothing amiss")), "{said:?}");
    }
    // Blanks and line ends are part of a text.
    let blanks = report_of(&stream_with(&seen.replace("the taint goes", "the  taint goes"), &seen));
    refused(&said(&blanks, &events, None), "reason of A-02 is");
}

#[test]
fn derived_values_of_a_report_are_verified_too() {
    let said = edited("  outcome: pass\n", "  outcome: pass\n  reason: it was close\n");
    refused(
        &said,
        "'checks.A-01.reason' does not follow from the checks: it says 'it was close', they make nothing",
    );
    let said = edited("  outcome: pass\n", "  outcome: pass\n  blockedBy: B-01\n");
    refused(&said, "'checks.A-01.blockedBy' does not follow");
    let said = edited("  outcome: pass\n", "  outcome: pass\n  declared: the vendor knows\n");
    refused(&said, "'checks.A-01.declared' does not follow");
    let said = edited("duration: 1.5s", "duration: 1500ms");
    refused(&said, "'checks.A-01.duration' does not follow");
}

#[test]
fn a_fact_put_in_and_checks_in_another_order() {
    let said_of = |text: &str| said(text, &stream(), None);
    let said = edited("  sharing: shared\n", "  sharing: shared\n  facts:\n    calls: \"1\"\n");
    refused(&said, "facts of A-01 is nothing by the stream of events, the report says '{\"calls\":\"1\"}'");
    let mut ledger = Fold::of(&stream()).ledger();
    ledger.entries.swap(0, 2);
    let said = said_of(&to_yaml(&ledger).expect("YAML"));
    assert_eq!(
        said,
        ["the checks are in another order than in the stream of events: B-01 stands where A-01 is"]
    );
}

#[test]
fn lists_are_not_compared_as_joined_texts() {
    let mut events = stream();
    events[10].event = Payload::StageEnded { stage: "a 1 ms, b".to_owned(), took_ms: 1, ok: true };
    let mut ledger = Fold::of(&events).ledger();
    ledger.stages = Vec::new();
    for name in ["a", "b"] {
        ledger.stages.push(StageTime { stage: name.to_owned(), took_ms: 1 });
    }
    refused(&said(&to_yaml(&ledger).expect("YAML"), &events, None), "stages is");
    let mut ledger = Fold::of(&stream()).ledger();
    let entry = &mut ledger.entries[0];
    (entry.suite, entry.title) = ("one: what A-01".to_owned(), "claims".to_owned());
    refused(&said(&to_yaml(&ledger).expect("YAML"), &stream(), None), "check A-01 says of itself");
}

#[test]
fn only_messages_may_follow_the_end_of_the_run() {
    let text = report_of(&stream());
    let other = Subject { image: "registry.example/better:v2".to_owned(), ..subject() };
    for (event, kind) in [
        (Payload::SubjectKnown(Box::new(other)), "subject-known"),
        (Payload::RunEnded { duration_ms: 1 }, "run-ended"),
        (Payload::CcmLeads, "ccm-leads"),
    ] {
        let mut events = stream();
        events.push(Event { at_ms: 99, lane: None, check: None, event });
        assert_eq!(report_of(&events), text, "it does not count");
        refused(&said(&text, &events, None), &format!("'{kind}' comes after the end of the run"));
    }
}
