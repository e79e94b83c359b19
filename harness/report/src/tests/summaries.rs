//! Summaries of runs in which the user left out checks.

use super::super::{summary, summary_without_verdict};
use super::entry;
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger, Outcome, SkipReason};

#[test]
fn a_run_of_few_chosen_checks_has_a_short_summary() {
    let left_out = |number: usize| {
        let outcome = Outcome::Skip { reason: SkipReason::Deselected, detail: "left out".to_owned() };
        entry("routes", &format!("ROW-{number:02}"), Level::Must, outcome, 0)
    };
    let pass =
        |number: usize| entry("routes", &format!("RAN-{number:02}"), Level::Must, Outcome::Pass, 1_200);
    let fail = || {
        let outcome = Outcome::Fail { message: "expected:  1\nlast seen: 2".to_owned() };
        entry("routes", "FAILED-01", Level::Must, outcome, 1_200)
    };
    let of = |ran: Vec<Entry>| {
        let entries = ran.into_iter().chain((0..9).map(left_out)).collect();
        summary_without_verdict(&Ledger { entries, duration_ms: 6_300, ..Ledger::default() })
    };
    assert_eq!(
        of(vec![pass(0)]),
        "\n1 of 10 checks ran, in 6.3s with the cluster; the others were left out\n"
    );
    let failed = of(vec![pass(0), fail()]);
    assert!(failed.lines().count() <= 6 && failed.contains("  FAILED-01  MUST    expected"), "{failed}");
    let many = of((0..4).map(pass).collect());
    assert!(many.contains("\nSpeed\n"), "{many}");
    let all = summary_without_verdict(&Ledger { entries: vec![pass(0)], ..Ledger::default() });
    assert!(all.contains("\nSpeed\n"), "nothing was left out: {all}");
}

#[test]
fn a_summary_counts_very_many_skipped_checks_by_suite() {
    let left = |suite: &str, number: usize| {
        let outcome = Outcome::Skip { reason: SkipReason::Deselected, detail: "left out by 'x'".to_owned() };
        entry(suite, &format!("ROW-{number:02}"), Level::Must, outcome, 0)
    };
    let summary_of = |entries: Vec<Entry>| summary(&Ledger { entries, ..Ledger::default() });
    let few = summary_of((0..9).map(|number| left("routes", number)).collect());
    assert!(
        few.contains("\n    ROW-00, ROW-01, ROW-02, ROW-03, ROW-04, ROW-05, ROW-06, ROW-07, ROW-08\n"),
        "{few}"
    );
    let many = summary_of(
        (0..60).map(|number| left(if number < 20 { "routes" } else { "operation" }, number)).collect(),
    );
    assert!(many.contains("\n    20 of routes, 40 of operation\n") && !many.contains("ROW-"), "{many}");
    let of_suite = |suite: &str, number: usize| {
        let detail = format!("suite {suite} was not asked for");
        let outcome = Outcome::Skip { reason: SkipReason::Deselected, detail };
        entry(suite, &format!("ROW-{number:02}"), Level::Must, outcome, 0)
    };
    let suites = summary_of(
        (0..9).map(|number| of_suite(if number < 4 { "routes" } else { "operation" }, number)).collect(),
    );
    let lines = "\n  deselected: suites that were not asked for\n    4 of routes, 5 of operation\n";
    assert!(suites.contains(lines) && !suites.contains("ROW-"), "{suites}");
    let long = summary_of((0..30).map(|number| left("routes", number)).collect());
    assert!(long.lines().all(|line| line.len() <= 80), "{long}");
}
