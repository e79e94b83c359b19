//! Parts of runs that are merged, and those that are refused.

use super::super::event::Skipped;
use super::*;
use crate::check::Level;
use crate::ledger::{Conformance, ContractComparison, SetBy, ShardOf};

const MERGING: Merging<'static> = Merging {
    checks_stage: "checks",
    shard_setting: "select.shard",
    machine_settings: &["clusters"],
    command: "merge a b",
};

/// What a check of the tests does, and in which part.
type Does = (&'static str, Isolation, usize, fn() -> Outcome);

fn fail() -> Outcome {
    Outcome::Fail { message: "no".to_owned() }
}

const PASSING: &[Does] = &[
    ("A-01", Isolation::Shared, 1, || Outcome::Pass),
    ("B-01", Isolation::Shared, 2, || Outcome::Pass),
    ("W-01", Isolation::AfterTheRun, 0, || Outcome::Pass),
];

fn subject(share: Share) -> Subject {
    let shard = Setting {
        bearing: ContractComparison::Looser,
        ..Setting::given("select.shard", share, SetBy::Option)
    };
    Subject {
        profile: "acme".to_owned(),
        check_set: "0123".to_owned(),
        settings: vec![Setting::given("clusters", share.part(), SetBy::Default), shard],
        reproduce: format!("run --shard {share}"),
        shard: Some(ShardOf { share, run: None }),
        ..Subject::default()
    }
}

/// The stream of a part, whose checks end as set.
fn part(subject: Subject, checks: &[Does]) -> Part {
    let share = subject.shard.as_ref().map_or(Share::WHOLE, |shard| shard.share);
    let mine = |of: usize| of == 0 || of == share.part();
    let planned = checks.iter().map(|(id, sharing, of, _)| PlannedCheck {
        id: (*id).to_owned(),
        suite: "s".to_owned(),
        title: "t".to_owned(),
        level: Level::Must,
        sharing: *sharing,
        private: false,
        skipped: (!mine(*of))
            .then(|| Skipped { reason: SkipReason::Deselected, detail: format!("in part {of}") }),
    });
    let head = RunBegan {
        schema: SCHEMA.to_owned(),
        started: format!("2026-03-01T12:00:0{}Z", share.part()),
        harness_version: "0.0.0".to_owned(),
    };
    let mut all = vec![
        (None, Payload::RunBegan(head)),
        (None, Payload::SubjectKnown(Box::new(subject))),
        (None, Payload::ChecksPlanned { checks: planned.collect() }),
        (None, Payload::CcmLeads),
    ];
    for (id, _, _, outcome) in checks.iter().filter(|(_, _, of, _)| mine(*of)) {
        let begun = Payload::CheckBegan { started: "2026-03-01T12:00:09Z".to_owned() };
        let (duration_ms, facts) = (3, BTreeMap::new());
        let ended = Payload::CheckEnded { ended: outcome(), duration_ms, budget_used_percent: None, facts };
        all.extend([(Some(*id), begun), (Some(*id), ended)]);
    }
    let took_ms = 10 * share.part() as u64;
    all.push((None, Payload::StageEnded { stage: "cluster".to_owned(), took_ms: 2, ok: true }));
    all.push((None, Payload::StageEnded { stage: "checks".to_owned(), took_ms, ok: true }));
    all.push((None, Payload::RunEnded { duration_ms: 100 * share.part() as u64 }));
    let event = |(at_ms, (check, event)): (u64, (Option<&str>, Payload))| {
        let lane = matches!(event, Payload::CcmLeads).then_some(1);
        Event { at_ms, lane, check: check.map(str::to_owned), event }
    };
    Part { name: format!("dir-{}", share.part()), events: (0..).zip(all).map(event).collect() }
}

fn share(text: &str) -> Share {
    text.parse().expect("a share")
}

fn two(checks: &[Does]) -> Vec<Part> {
    ["1/2", "2/2"].map(|text| part(subject(share(text)), checks)).into()
}

fn ledger(parts: &[Part]) -> Ledger {
    Fold::of(&merge(parts, MERGING).expect("parts of one run")).ledger()
}

fn refused(parts: &[Part]) -> String {
    merge(parts, MERGING).expect_err("no one run").join("\n")
}

#[test]
fn the_parts_of_a_run_are_the_run() {
    let parts = two(PASSING);
    assert_eq!(Fold::of(&parts[0].events).ledger().conformance(), Conformance::Partial, "a part alone");
    let mut turned = two(PASSING);
    turned.reverse();
    for parts in [parts, turned] {
        let whole = ledger(&parts);
        assert_eq!(whole.conformance(), Conformance::Conformant);
        let ids: Vec<&str> = whole.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, ["A-01", "B-01", "W-01"]);
        assert_eq!((whole.duration_ms, whole.started.as_str()), (200, "2026-03-01T12:00:01Z"));
        let stages: Vec<(&str, u64)> =
            whole.stages.iter().map(|one| (one.stage.as_str(), one.took_ms)).collect();
        assert_eq!(stages, [("part 1/2: cluster", 2), ("part 2/2: cluster", 2), ("checks", 20)]);
        let subject = &whole.subject;
        assert_eq!((subject.shard.as_ref(), subject.reproduce.as_str()), (None, "merge a b"));
        let merged: Vec<String> = subject.merged.iter().map(|one| one.share.to_string()).collect();
        assert_eq!(merged, ["1/2", "2/2"]);
        let settings: Vec<String> = subject.settings.iter().map(ToString::to_string).collect();
        assert_eq!(settings, ["clusters 1, 2 (default)"]);
    }
}

#[test]
fn lanes_of_parts_are_lanes_of_their_own() {
    let events = merge(&two(PASSING), MERGING).expect("one run");
    let lanes: Vec<u32> = events.iter().filter_map(|event| event.lane).collect();
    assert_eq!(lanes, [1, 3]);
    assert!(events.is_sorted_by_key(|event| event.at_ms));
}

#[test]
fn a_check_of_the_whole_run_has_its_worst_outcome() {
    let mut parts = two(PASSING);
    let bad: Vec<Does> = vec![PASSING[0], PASSING[1], ("W-01", Isolation::AfterTheRun, 0, fail)];
    parts[1] = part(subject(share("2/2")), &bad);
    let whole = ledger(&parts);
    assert_eq!(whole.conformance(), Conformance::NotConformant);
    assert_eq!(whole.entries[2].outcome, fail());
    let ends = merge(&parts, MERGING).expect("one run");
    let ends = ends.iter().filter(|event| matches!(event.event, Payload::CheckEnded { .. }));
    assert_eq!(ends.count(), 3, "each check ends once");
}

#[test]
fn a_part_whose_environment_failed_leaves_the_whole_unjudged() {
    let mut parts = two(PASSING);
    let failed = Payload::EnvironmentFailed { message: "no disk".to_owned() };
    let events = &mut parts[1].events;
    events.retain(|event| event.check.is_none());
    let last = events.len() - 1;
    events.insert(last, Event { at_ms: 9, lane: None, check: None, event: failed });
    let whole = ledger(&parts);
    assert_eq!(whole.environment_error.as_deref(), Some("part 2/2: no disk"));
    assert_eq!(whole.conformance(), Conformance::NotJudged);
}

#[test]
fn streams_of_different_runs_are_refused_by_name() {
    let of = |text: &str| part(subject(share(text)), PASSING);
    assert_eq!(refused(&[of("1/2")]), "part 2 of 2 is missing");
    assert_eq!(refused(&[]), "no parts were given");
    assert!(refused(&[of("1/2"), of("2/2"), of("2/2")]).contains("part 2 was given 2 times: dir-2, dir-2"));
    assert!(
        refused(&[of("1/2"), of("2/3")])
            .contains("dir-1 (part 1/2) and dir-2 (part 2/3) are parts of different splits")
    );
    let whole = part(Subject { shard: None, ..subject(share("1/2")) }, PASSING);
    assert!(refused(&[whole, of("2/2")]).contains("dir-1: a complete run, not a part of one"));
    let mut cut = of("2/2");
    cut.events.pop();
    assert!(refused(&[of("1/2"), cut]).contains("dir-2: the stream of events was cut"));
    let twice: Vec<Does> = vec![("A-01", Isolation::Shared, 2, fail), PASSING[1], PASSING[2]];
    let doubled = refused(&[of("1/2"), part(subject(share("2/2")), &twice)]);
    assert_eq!(doubled, "check A-01 was judged in both dir-1 (part 1/2) and dir-2 (part 2/2)");
}

#[test]
fn parts_of_other_runs_versions_and_profiles_are_refused_with_what_differs() {
    let second = || subject(share("2/2"));
    let named = |run: &str| Some(ShardOf { share: share("2/2"), run: Some(run.to_owned()) });
    let with_setting = |value: &str| {
        let mut other = second();
        other.settings.push(Setting::given("timing", value, SetBy::Option));
        other
    };
    for (other, why) in [
        (
            Subject { profile: "other".to_owned(), ..second() },
            "subject.profile is \"other\", in dir-1 (part 1/2) it is \"acme\"",
        ),
        (Subject { check_set: "9".to_owned(), ..second() }, "subject.checkSet is \"9\""),
        (Subject { image_digest: "sha256:9".to_owned(), ..second() }, "subject.imageDigest is \"sha256:9\""),
        (
            Subject { shard: named("ci-7"), ..second() },
            "its run is 'ci-7', in dir-1 (part 1/2) it is without a name",
        ),
        (with_setting("default"), "a setting is '--timing default', in dir-1 (part 1/2) it is missing"),
    ] {
        let said = refused(&[part(subject(share("1/2")), PASSING), part(other, PASSING)]);
        assert!(said.starts_with("dir-2 (part 2/2): ") && said.contains(why), "{why}\nis not in\n{said}");
    }
}

#[test]
fn parts_that_certify_belong_to_a_run_with_a_name() {
    let certify = |text: &str, run: Option<&str>| {
        let shard = ShardOf { share: share(text), run: run.map(str::to_owned) };
        part(Subject { certify: true, shard: Some(shard), ..subject(share(text)) }, PASSING)
    };
    let said = refused(&[certify("1/2", None), certify("2/2", Some(""))]);
    assert!(said.contains("dir-1: a certifying part without the name of its run"), "{said}");
    assert!(said.contains("dir-2: ") && said.contains("'--shard-of NAME'"), "{said}");
    let named = [certify("1/2", Some("ci-7")), certify("2/2", Some("ci-7"))];
    assert_eq!(ledger(&named).conformance(), Conformance::Conformant);
}

#[test]
fn a_part_says_nothing_after_its_end() {
    let mut parts = two(PASSING);
    let other = subject(share("2/2"));
    let message = Payload::Said { text: "wrote report.yaml".to_owned(), detail: false };
    for (event, refuses) in [(message, false), (Payload::SubjectKnown(Box::new(other)), true)] {
        parts[1].events.push(Event { at_ms: 999, lane: None, check: None, event });
        let merged = merge(&parts, MERGING);
        assert_eq!(merged.is_err(), refuses);
        if let Err(why) = merged {
            assert_eq!(
                why,
                ["dir-2: 'subject-known' after the end of the run, where a run only writes messages"]
            );
        }
    }
}
