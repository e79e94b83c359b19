//! Edits of a report or its stream, each of which is refused with its own message.

use super::{Material, StreamFacts, sha256_digest, verify};
use crate::{Golden, GoldenCheck, read, to_yaml};
use harness_config::{RunFile, Source, plan};
use harness_core::check::{Isolation, Level};
use harness_core::events::{Event, Fold, Payload, PlannedCheck, PromiseBroken, RunBegan, SCHEMA, Skipped};
use harness_core::ledger::{ContractComparison, Outcome, SetBy, SkipReason, Subject};
use std::collections::BTreeMap;
use std::path::Path;

mod forgeries;
mod streams;
mod strict;

const DIGEST: &str = "sha256:aaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccdddd";
/// A version whose profiles of conformance are known.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn golden() -> Golden {
    let check = |id: &str, level, framework| GoldenCheck {
        id: id.to_owned(),
        suite: "one".to_owned(),
        level,
        framework,
        since: framework.then_some(30),
        title: format!("what {id} claims"),
    };
    let checks = vec![
        check("A-01", Level::Must, false),
        check("A-02", Level::Must, true),
        check("B-01", Level::Should, false),
        check("C-01", Level::Must, false),
    ];
    Golden { version: VERSION.to_owned(), profiles: Vec::new(), checks }
}

fn subject() -> Subject {
    Subject {
        profile: "acme".to_owned(),
        image: "registry.example/acme:v1".to_owned(),
        image_digest: DIGEST.to_owned(),
        framework_version: Some("1.36".to_owned()),
        harness_version: VERSION.to_owned(),
        check_set: golden().check_set(),
        settings: plan(&Source::Defaults, RunFile::default()).expect("a plan").settings,
        ..Subject::default()
    }
}

/// A run in which one check failed and another was not declared.
fn stream_of(subject: Subject) -> Vec<Event> {
    let planned = |check: &GoldenCheck| PlannedCheck {
        id: check.id.clone(),
        suite: check.suite.clone(),
        title: check.title.clone(),
        level: check.level,
        sharing: Isolation::Shared,
        private: false,
        skipped: (check.id == "C-01")
            .then(|| Skipped { reason: SkipReason::NotDeclared, detail: "no routes".to_owned() }),
    };
    let run = RunBegan {
        schema: SCHEMA.to_owned(),
        started: "2026-03-01T12:00:00Z".to_owned(),
        harness_version: VERSION.to_owned(),
    };
    let ended = |ended: Outcome| Payload::CheckEnded {
        ended,
        duration_ms: 1_500,
        budget_used_percent: Some(12),
        facts: BTreeMap::new(),
    };
    let began = || Payload::CheckBegan { started: "2026-03-01T12:00:01Z".to_owned() };
    let broken = Payload::PromiseBroken(PromiseBroken {
        wait: 1,
        subject: None,
        promise: "the taint goes".to_owned(),
        expected: "no taint".to_owned(),
        seen: "a taint".to_owned(),
        waited_ms: 1_400,
        reads: 9,
        judged: true,
    });
    let of = |id: &str, payload: Payload| (Some(id.to_owned()), payload);
    let list = vec![
        (None, Payload::RunBegan(run)),
        (None, Payload::SubjectKnown(Box::new(subject))),
        (None, Payload::ChecksPlanned { checks: golden().checks.iter().map(planned).collect() }),
        of("A-01", began()),
        of("A-01", ended(Outcome::Pass)),
        of("A-02", began()),
        of("A-02", broken),
        of("A-02", ended(Outcome::Fail { message: "promise:   the taint goes".to_owned() })),
        of("B-01", began()),
        of("B-01", ended(Outcome::Pass)),
        (None, Payload::StageEnded { stage: "checks".to_owned(), took_ms: 3_000, ok: true }),
        (None, Payload::RunEnded { duration_ms: 9_000 }),
        (None, Payload::Said { text: "wrote report.yaml".to_owned(), detail: false }),
    ];
    (0..).zip(list).map(|(at_ms, (check, event))| Event { at_ms, lane: None, check, event }).collect()
}

fn stream() -> Vec<Event> {
    stream_of(subject())
}

/// The same run with a vendor's own check, which failed.
fn stream_with_a_private_check() -> Vec<Event> {
    let mut events = stream();
    let Payload::ChecksPlanned { checks } = &mut events[2].event else { panic!("{:?}", events[2]) };
    checks.push(PlannedCheck {
        id: "ACME-LABEL-01".to_owned(),
        suite: "acme".to_owned(),
        private: true,
        ..checks[0].clone()
    });
    let of_check = |event: &Event, payload: Payload| Event {
        check: Some("ACME-LABEL-01".to_owned()),
        event: payload,
        ..event.clone()
    };
    let began = of_check(&events[8], Payload::CheckBegan { started: "2026-03-01T12:00:01Z".to_owned() });
    let ended = Payload::CheckEnded {
        ended: Outcome::Fail { message: "promise:   a rack".to_owned() },
        duration_ms: 1,
        budget_used_percent: None,
        facts: BTreeMap::new(),
    };
    let ended = of_check(&events[8], ended);
    events.splice(8..8, [began, ended]);
    events
}

#[test]
fn private_checks_are_compared_with_the_stream_and_not_with_the_version() {
    let plain = said(&report_of(&stream()), &stream(), None);
    let events = stream_with_a_private_check();
    let text = report_of(&events);
    assert!(text.contains("privateChecks:"), "{text}");
    assert_eq!(said(&text, &events, None), plain);
    let forged = text.replace("promise:   a rack", "promise:   no rack");
    assert_ne!(forged, text);
    assert!(said(&forged, &events, None).len() > plain.len(), "{forged}");
}

fn report_of(events: &[Event]) -> String {
    to_yaml(&Fold::of(events).ledger()).expect("YAML")
}

/// The findings for a report and its stream.
fn said(text: &str, events: &[Event], image: Option<&str>) -> Vec<String> {
    let report = read(text, Path::new("report.yaml")).expect("the form of a report");
    let golden = (report.ledger.subject.harness_version == VERSION).then(golden);
    let image = image.map(|image| sha256_digest(image).expect("a digest"));
    let stream_facts = StreamFacts::by(events);
    let image = image.as_deref();
    let material = Material { report: &report, stream_facts: &stream_facts, golden: golden.as_ref(), image };
    verify(&material).iter().map(ToString::to_string).collect()
}

/// The findings after a text of the report is replaced.
#[track_caller]
fn edited(from: &str, to: &str) -> Vec<String> {
    let text = report_of(&stream());
    let other = text.replacen(from, to, 1);
    assert_ne!(text, other, "{from} is not in\n{text}");
    said(&other, &stream(), None)
}

#[track_caller]
fn refused(said: &[String], expected: &str) {
    assert!(said.iter().any(|one| one.contains(expected)), "'{expected}' is not in {said:#?}");
}

#[test]
fn a_report_as_it_was_written_holds_failed_checks_included() {
    assert_eq!(said(&report_of(&stream()), &stream(), Some(DIGEST)), [""; 0]);
    let named = format!("acme@sha256:{}", DIGEST.trim_start_matches("sha256:").to_uppercase());
    assert_eq!(said(&report_of(&stream()), &stream(), Some(&named)), [""; 0]);
}

#[test]
fn an_outcome_made_better() {
    let text = report_of(&stream()).replacen("outcome: fail", "outcome: pass", 1);
    refused(
        &said(&text, &stream(), None),
        "check A-02 ended with 'fail' by the stream of events, the report says 'pass'",
    );
}

#[test]
fn a_profile_that_counts_by_hand() {
    let said = edited("standing: not-declared", "standing: conformant");
    refused(&said, "standing' does not follow from the checks");
}

#[test]
fn an_outcome_made_better_with_verdict_and_figures_to_match() {
    let mut ledger = Fold::of(&stream()).ledger();
    ledger.entries[1].outcome = Outcome::Pass;
    let text = to_yaml(&ledger).expect("YAML");
    let said = said(&text, &stream(), None);
    assert_eq!(said, ["check A-02 ended with 'fail' by the stream of events, the report says 'pass'"]);
}

#[test]
fn a_check_taken_out() {
    let mut ledger = Fold::of(&stream()).ledger();
    ledger.entries.remove(1);
    let text = to_yaml(&ledger).expect("YAML");
    refused(
        &said(&text, &stream(), None),
        &format!("check A-02 is missing: version {VERSION} of the harness has it"),
    );
}

#[test]
fn a_check_taken_out_of_the_stream_too() {
    let mut events = stream();
    if let Payload::ChecksPlanned { checks } = &mut events[2].event {
        checks.remove(1);
    }
    events.retain(|event| event.check.as_deref() != Some("A-02"));
    refused(&said(&report_of(&events), &events, None), "check A-02 is missing");
}

#[test]
fn a_check_put_in() {
    let mut ledger = Fold::of(&stream()).ledger();
    let mut more = ledger.entries[0].clone();
    more.id = "Z-99".to_owned();
    ledger.entries.push(more);
    let text = to_yaml(&ledger).expect("YAML");
    refused(
        &said(&text, &stream(), None),
        &format!("check Z-99 was added: version {VERSION} of the harness has no such check"),
    );
}

#[test]
fn a_duplicate_check() {
    let mut ledger = Fold::of(&stream()).ledger();
    ledger.entries.push(ledger.entries[0].clone());
    let text = to_yaml(&ledger).expect("YAML");
    refused(&said(&text, &stream(), None), "duplicate check A-01");
}

#[test]
fn a_level_made_lower() {
    let mut events = stream();
    if let Payload::ChecksPlanned { checks } = &mut events[2].event {
        checks[1].level = Level::Should;
    }
    refused(&said(&report_of(&events), &events, None), "check A-02 is of level MUST, not SHOULD");
}

#[test]
fn a_level_is_lower_for_a_ccm_that_is_not_of_the_framework() {
    let mut events = stream_of(Subject { framework_version: None, ..subject() });
    if let Payload::ChecksPlanned { checks } = &mut events[2].event {
        checks[1].level = Level::Should;
    }
    assert_eq!(said(&report_of(&events), &events, None), [""; 0]);
}

#[test]
fn a_level_is_lower_for_a_ccm_of_a_framework_before_the_claim() {
    let mut events = stream_of(Subject { framework_version: Some("1.29".to_owned()), ..subject() });
    let report = report_of(&events);
    refused(&said(&report, &events, None), "check A-02 is of level INFO, not MUST");
    if let Payload::ChecksPlanned { checks } = &mut events[2].event {
        checks[1].level = Level::Info;
    }
    assert_eq!(said(&report_of(&events), &events, None), [""; 0]);
}

#[test]
fn a_claim_reworded() {
    refused(
        &edited("title: what A-02 claims", "title: something easy"),
        "check A-02 says of itself 'one: something easy'",
    );
}

#[test]
fn a_version_that_is_not_known() {
    let events = stream_of(Subject { harness_version: "9.9.9".to_owned(), ..subject() });
    let said = said(&report_of(&events), &events, None);
    refused(&said, "version '9.9.9' of the harness is not known to this program");
    refused(&said, &format!("it was begun by version {VERSION} and speaks of version 9.9.9"));
}

#[test]
fn another_set_of_checks() {
    let events = stream_of(Subject { check_set: "000000000000".to_owned(), ..subject() });
    refused(&said(&report_of(&events), &events, None), "'subject.checkSet' does not follow from the checks");
}

#[test]
fn a_stream_cut_anywhere() {
    let (text, events) = (report_of(&stream()), stream());
    for length in 1..events.len() - 1 {
        let cut = format!("the stream of events was cut after event {length} of {}", events.len() - 1);
        refused(&said(&text, &events[..length], None), &cut);
    }
}

#[test]
fn a_verdict_and_counts_written_by_hand() {
    refused(
        &edited("verdict: not-conformant", "verdict: conformant"),
        "'verdict' does not follow from the checks: it says 'conformant', they make 'not-conformant'",
    );
    refused(
        &edited("fail: 1", "fail: 0"),
        "'counts.MUST.fail' does not follow from the checks: it says '0', they make '1'",
    );
    refused(
        &edited("- id: A-02\n  why", "- id: B-01\n  why"),
        "'because.0.id' does not follow from the checks",
    );
}

#[test]
fn figures_of_a_check_and_of_the_run() {
    refused(
        &edited("duration: 1.5s", "duration: 1s"),
        "duration of A-01 is '1.5s' by the stream of events, the report says '1s'",
    );
    refused(&edited("budgetUsedPercent: 12", "budgetUsedPercent: 2"), "budgetUsedPercent of A-01");
    refused(&edited("duration: 9s", "duration: 8s"), "duration is '9s' by the stream of events");
    refused(
        &edited("took: 3s", "took: 2s"),
        "stages is '[{\"stage\":\"checks\",\"took\":\"3s\"}]' by the stream",
    );
    refused(&edited("promise:   the taint goes", "promise:   the taint stays"), "reason of A-02");
}

#[test]
fn another_subject() {
    refused(
        &edited("profile: acme", "profile: best"),
        "subject.profile is 'acme' by the stream of events, the report says 'best'",
    );
    refused(&edited(DIGEST, "sha256:ddddd"), "subject.imageDigest");
}

#[test]
fn a_relaxation_taken_out() {
    let mut events = stream();
    let Payload::SubjectKnown(loose) = &mut events[1].event else { panic!("the subject") };
    let scale = loose.settings.iter_mut().find(|one| one.setting == "limits.scale").expect("it is recorded");
    (scale.value, scale.bearing, scale.from) = ("2".to_owned(), ContractComparison::Looser, SetBy::RunFile);
    let text = report_of(&events);
    refused(
        &said(&text, &events, None),
        "relaxed: limits.scale 2 (contract: 1; run file); the result is not by the contract",
    );
    // Only in the report: the stream differs.
    let strict = report_of(&stream());
    let hidden = said(&strict, &events, None);
    refused(&hidden, "settings: by the stream of events '{");
    refused(&hidden, "\"setting\":\"limits.scale\",\"value\":\"2\"");
    // With a wrong title, in both.
    let Payload::SubjectKnown(loose) = &mut events[1].event else { panic!("the subject") };
    let scale = loose.settings.iter_mut().find(|one| one.setting == "limits.scale").expect("it is recorded");
    scale.bearing = ContractComparison::AsContract;
    refused(&said(&report_of(&events), &events, None), "limits.scale: 2 is \"looser\", not \"as-contract\"");
    // Removed from both.
    let Payload::SubjectKnown(loose) = &mut events[1].event else { panic!("the subject") };
    loose.settings.retain(|one| one.setting != "limits.scale" && one.setting != "limits.budgets.boot");
    let said = said(&report_of(&events), &events, None);
    refused(&said, "limits.scale is not given");
    refused(&said, "limits.budgets.boot is not given");
}

#[test]
fn a_contract_made_softer() {
    let mut events = stream();
    let Payload::SubjectKnown(loose) = &mut events[1].event else { panic!("the subject") };
    let watch =
        loose.settings.iter_mut().find(|one| one.setting == "limits.budgets.watch").expect("it is recorded");
    (watch.value, watch.contract) = ("1m".to_owned(), Some("1m".to_owned()));
    refused(&said(&report_of(&events), &events, None), "limits.budgets.watch: the contract says 10s, not 1m");
}

#[test]
fn a_certificate_that_cannot_be() {
    let events = stream_of(Subject { certify: true, simulated: true, ..subject() });
    let said = said(&report_of(&events), &events, None);
    refused(&said, "it says 'certify: true', which refuses what is in it: the cluster was a simulation");
}

#[test]
fn another_image() {
    let report = report_of(&stream());
    let asked = format!("sha256:{}", "f".repeat(64));
    let other = said(&report, &stream(), Some(&asked));
    assert_eq!(other, [format!("it is about the image {DIGEST}, not {asked}")]);
    let events = stream_of(Subject { image_digest: String::new(), ..subject() });
    refused(&said(&report_of(&events), &events, Some(DIGEST)), "it is about the image without a digest");
}
