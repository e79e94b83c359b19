//! The whole harness without Docker: every check on the embedded cluster, with the reference CCM and with none.

use harness::ledger::{Conformance, Ledger, Outcome, SkipReason};
use std::path::Path;
use std::process::{Command, Output};

/// Runs the command on the embedded cluster; its output and the report.
fn run(profile: &str, out: &Path) -> (Output, Ledger) {
    let output = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["run", "--cluster", "embedded", "--profile", profile, "--out"])
        .arg(out)
        .output()
        .expect("the command can be run");
    let report = out.join("report.yaml");
    let text = std::fs::read_to_string(&report).unwrap_or_else(|error| {
        panic!("no report ({error}):\n{}", String::from_utf8_lossy(&output.stderr));
    });
    let ledger = harness::report::parse(&text, &report).expect("a report of this version");
    (output, ledger)
}

/// The checks that ended otherwise than `expected`, with what was said of them.
fn others(ledger: &Ledger, expected: impl Fn(&Outcome) -> bool) -> String {
    let other = ledger.entries.iter().filter(|entry| !expected(&entry.outcome));
    other.map(|entry| format!("{}: {:?}\n", entry.id, entry.outcome)).collect()
}

#[test]
fn the_reference_ccm_passes_every_check_and_the_result_is_partial() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, ledger) = run("reference", folder.path());
    assert_eq!(others(&ledger, |outcome| *outcome == Outcome::Pass), "");
    assert!(ledger.entries.len() > 60, "{} checks", ledger.entries.len());
    assert_eq!(ledger.conformance(), Conformance::Partial, "a simulation certifies nothing");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn without_a_ccm_no_check_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, ledger) = run("null", folder.path());
    let fails = |outcome: &Outcome| {
        matches!(outcome, Outcome::Fail { .. } | Outcome::Skip { reason: SkipReason::NotDeclared, .. })
    };
    assert_eq!(others(&ledger, fails), "");
    assert_eq!(output.status.code(), Some(1));
}
