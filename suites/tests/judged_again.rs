//! A check that ended with an environment error is run once more.

use harness_config::{RunFile, Source, plan};
use harness_core::check::{CheckError, Party};
use harness_core::ledger::{Ledger, Outcome};
use harness_runner::{Quiet, Run, exit_code_of};
use harness_testkit::{Check, CheckCx, Suite};
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

#[test]
fn a_check_that_the_environment_failed_is_judged_once_more_and_the_report_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = RunFile { profile: Some("reference-credential-provider".to_owned()), ..RunFile::default() };
    let mut plan = plan(&Source::Defaults, file).expect("a plan");
    plan.output = folder.path().join("out");
    let (reproduce, cancel) = (String::new(), CancellationToken::new());
    let run = Run { suites: &SUITES, plan, reproduce, watch: false, cancel };
    let code = exit_code_of(run, &mut Quiet { wanted: |_: &str| true, at_once: Some(1) });
    let report = folder.path().join("out/report.yaml");
    let text = std::fs::read_to_string(&report).expect("a report");
    let Ledger { entries, .. } = harness_report::parse(&text, &report).expect("a report of this version");
    let tries: Vec<u32> = TRIES.iter().map(|tries| tries.load(Ordering::SeqCst)).collect();
    assert_eq!((code, tries), (3, vec![2, 2, 1]), "{text}");
    let told: Vec<(bool, Option<&str>)> = entries
        .iter()
        .map(|one| (one.outcome == Outcome::Pass, one.facts.get("first-try").map(String::as_str)))
        .collect();
    let why = |id| format!("the environment failed it: {id}: no space left on device");
    let (once, always) = (why("CREDP-01"), why("CREDP-02"));
    assert_eq!(told, [(true, Some(once.as_str())), (false, Some(always.as_str())), (true, None)]);
    assert!(matches!(entries[1].outcome, Outcome::Error { .. }), "{text}");
    assert!(
        folder.path().join("out/evidence/CREDP-01/verdict.txt").is_file(),
        "what failed the first try is kept"
    );
}
