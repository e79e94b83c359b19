//! What becomes of a check that the environment failed: it is judged once more. And of checks after the last failure that
//! is accepted: they are not started.

use harness_config::{RunFile, Source, plan};
use harness_core::check::{CheckError, Party, Violation};
use harness_core::ledger::{Ledger, Outcome, SkipReason};
use harness_runner::{Judging, Quiet, Run, Shown, Watch, exit_code_of};
use harness_testkit::{Check, CheckCx, Suite};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_util::sync::CancellationToken;

/// How often each check was tried.
static TRIES: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

fn try_of(check: usize) -> u32 {
    TRIES[check].fetch_add(1, Ordering::SeqCst) + 1
}

fn disk_full(of: &CheckCx) -> CheckError {
    CheckError::Error(format!("{}: no space left on device", of.id()))
}

const CHECKS: [Check; 3] = [
    Check::own("CREDP-01", "is failed once", "none", |cx| {
        Box::pin(async move { if try_of(0) == 1 { Err(disk_full(cx)) } else { Ok(()) } })
    })
    .without_a_cluster(),
    Check::own("CREDP-02", "is failed always", "none", |cx| {
        Box::pin(async move {
            try_of(1);
            Err(disk_full(cx))
        })
    })
    .without_a_cluster(),
    Check::own("CREDP-03", "is met", "none", |_| {
        Box::pin(async move {
            try_of(2);
            Ok(())
        })
    })
    .without_a_cluster(),
];

static SUITES: [Suite; 1] = [Suite {
    name: "image-credentials",
    proves: "nothing",
    judges: Party::ImageCredentials,
    tables: &[&CHECKS],
}];

/// Runs these suites without a cluster: the exit code and the report.
fn judged(suites: &'static [Suite], folder: &Path, judging: &mut dyn Judging) -> (u8, String, Ledger) {
    let file = RunFile { profile: Some("reference-credential-provider".to_owned()), ..RunFile::default() };
    let mut plan = plan(&Source::Defaults, file).expect("a plan");
    plan.output = folder.join("out");
    let (reproduce, cancel) = (String::new(), CancellationToken::new());
    let code = exit_code_of(Run { suites, plan, reproduce, watch: Watch::No, cancel }, judging);
    let report = folder.join("out/report.yaml");
    let text = std::fs::read_to_string(&report).expect("a report");
    let ledger = harness_report::parse(&text, &report).expect("a report of this version");
    (code, text, ledger)
}

const fn failing(id: &'static str) -> Check {
    Check::own(id, "fails", "none", |_| {
        Box::pin(async { Err(CheckError::Violation(Box::new(Violation::new("p", "1", "2")))) })
    })
    .without_a_cluster()
}

static FAILING: [Suite; 1] = [Suite {
    name: "image-credentials",
    proves: "nothing",
    judges: Party::ImageCredentials,
    tables: &[&[failing("CREDP-01"), failing("CREDP-02"), failing("CREDP-03")]],
}];

#[test]
fn no_check_starts_after_as_many_failures_as_are_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judging = Shown { at_once: 1, max_fail: Some(1), ..Shown::default() };
    let (code, text, Ledger { entries, .. }) = judged(&FAILING, folder.path(), &mut judging);
    assert_eq!(code, 1, "{text}");
    let failed = entries.iter().filter(|one| matches!(one.outcome, Outcome::Fail { .. })).count();
    let left_out = |outcome: &Outcome| match outcome {
        Outcome::Skip { reason: SkipReason::Deselected, detail } => detail.contains("--max-fail 1"),
        _ => false,
    };
    let left_out = entries.iter().filter(|one| left_out(&one.outcome)).count();
    assert_eq!((failed, left_out), (1, 2), "{text}");
}

#[test]
fn a_check_that_the_environment_failed_is_judged_once_more_and_the_report_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut judging = Quiet { wanted: |_: &str| true, at_once: Some(1) };
    let (code, text, Ledger { entries, .. }) = judged(&SUITES, folder.path(), &mut judging);
    let tries: Vec<u32> = TRIES.iter().map(|tries| tries.load(Ordering::SeqCst)).collect();
    assert_eq!((code, tries), (3, vec![2, 2, 1]), "{text}");
    let facts: Vec<(bool, Option<&str>)> = entries
        .iter()
        .map(|one| (one.outcome == Outcome::Pass, one.facts.get("first-try").map(String::as_str)))
        .collect();
    let why = |id| format!("the environment failed it: {id}: no space left on device");
    let (once, always) = (why("CREDP-01"), why("CREDP-02"));
    assert_eq!(facts, [(true, Some(once.as_str())), (false, Some(always.as_str())), (true, None)]);
    assert!(matches!(entries[1].outcome, Outcome::Error { .. }), "{text}");
    assert!(
        folder.path().join("out/evidence/CREDP-01/verdict.txt").is_file(),
        "what failed the first try is kept"
    );
}
