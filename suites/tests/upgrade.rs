//! Upgrades on the embedded cluster: the reference CCM replaces itself, and old releases that are no use are refused.

use harness_core::ledger::{Ledger, Outcome};
use std::path::Path;
use std::process::{Command, Output};

/// Runs the suite of upgrades with these arguments in a folder.
fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.args(["run", "--cluster", "embedded"]).args(arguments).current_dir(folder);
    command.output().expect("the command can be run")
}

fn ledger(folder: &Path) -> Ledger {
    let report = folder.join("conformance-results/report.yaml");
    let text = std::fs::read_to_string(&report).expect("a report");
    harness_report::parse(&text, &report).expect("a report of this version")
}

#[test]
fn the_reference_ccm_passes_every_check_of_an_upgrade() {
    let folder = tempfile::tempdir().expect("a folder");
    // With one place for the CCM its manifests would never run both releases.
    let machines = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: control-plane}, {role: control-plane}]\n";
    std::fs::write(folder.path().join("machines.yaml"), machines).expect("written");
    let topology = ["--topology", "./machines.yaml"];
    let upgrade = ["--profile", "mutants", "--upgrade-from", "profile:reference", "--suite", "upgrade"];
    let output = run(&[&topology[..], &upgrade[..]].concat(), folder.path());
    let judged: Vec<_> =
        ledger(folder.path()).entries.into_iter().filter(|entry| entry.suite == "upgrade").collect();
    assert!(judged.len() >= 20, "{}", judged.len());
    for entry in judged {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(entry.outcome, Outcome::Pass, "{}\n{error}", entry.id);
    }
}

#[test]
fn an_old_release_that_is_no_use_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    for (release, why) in [
        ("profile:reference", "is the CCM under test itself"),
        ("profile:null", "deploys no CCM"),
        ("binary:./nowhere", "./nowhere"),
        ("v1.35", "write profile:NAME"),
    ] {
        let output = run(&["--upgrade-from", release], folder.path());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{release}: {error}");
        assert!(error.contains(why), "{release}: {error}");
    }
    assert!(!folder.path().join("conformance-results").exists(), "nothing was started");
}

#[test]
fn an_old_release_that_does_not_start_is_not_held_against_the_ccm_under_test() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(&["--upgrade-from", "binary:/bin/false", "--only", "UPG-01"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let ledger = ledger(folder.path());
    let entry = ledger.entries.iter().find(|entry| entry.id == "UPG-01").expect("it was judged");
    let Outcome::Error { message } = &entry.outcome else { panic!("{:?}", entry.outcome) };
    assert!(message.starts_with("the release to upgrade from does not start"), "{message}");
    assert!(message.contains("exit code 1"), "{message}");
}
