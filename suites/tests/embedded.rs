//! The whole harness without Docker: every check on the embedded cluster, with the reference CCM and with the
//! null CCM.

use harness_core::check::Level;
use harness_core::ledger::{Conformance, Ledger, Outcome, SkipReason};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the command on the embedded cluster; returns its output and the report.
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
    let ledger = harness_report::parse(&text, &report).expect("a report of this version");
    (output, ledger)
}

/// The checks whose outcome is not as `expected`, with their messages.
fn others(ledger: &Ledger, expected: impl Fn(&Outcome) -> bool) -> String {
    let other = ledger.entries.iter().filter(|entry| !expected(&entry.outcome));
    other.map(|entry| format!("{}: {:?}\n", entry.id, entry.outcome)).collect()
}

/// The folder that keeps the reference CCM's results, so that they can be compared with those on another cluster.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded-reference")
}

/// The events about a check in the stream: its waits, and the last calls to the cloud in its environment at
/// that time.
fn story(stream: &str, id: &str) -> String {
    let of_check: Vec<&str> =
        stream.lines().filter(|line| line.contains(&format!("\"check\":\"{id}\""))).collect();
    let at = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["at_ms"].as_u64();
    let lane = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["lane"].as_u64();
    let (Some(first), Some(last)) = (of_check.first(), of_check.last()) else { return String::new() };
    let meanwhile = |line: &&str| {
        line.contains("\"type\":\"cloud-call\"")
            && lane(line) == lane(first)
            && (at(first)..=at(last)).contains(&at(line))
    };
    let calls: Vec<&str> = stream.lines().filter(meanwhile).collect();
    let calls = calls.iter().skip(calls.len().saturating_sub(CALLS_SHOWN));
    of_check.iter().chain(calls).map(|line| format!("  {line}\n")).collect()
}

/// How many calls to the cloud are shown for a failed check.
const CALLS_SHOWN: usize = 100;
/// How many checks may fail once, if they pass when they are run alone.
const MAY_FLAKE: usize = 1;

/// Prints to the log, also when the test passes in the end.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Shows everything about the failed checks, and runs them alone three times. Returns whether all of them
/// passed then, so that the failure may have been a flake.
fn only_flaked(folder: &Path, failed: &[&str]) -> bool {
    let stream = std::fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default();
    for id in failed {
        say(&format!("{id}:\n{}", story(&stream, id)));
    }
    if failed.len() > MAY_FLAKE {
        return false;
    }
    let again = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["run", "--cluster", "embedded", "--repeat", "3", "--failed-from"])
        .arg(folder.join("report.yaml"))
        .arg("--out")
        .arg(folder.join("again"))
        .output()
        .expect("the command can be run");
    say(&format!("{failed:?} run again three times: {}", String::from_utf8_lossy(&again.stdout)));
    again.status.success()
}

#[test]
fn the_reference_ccm_passes_every_check_and_the_result_is_partial() {
    let folder = kept();
    let _ = std::fs::remove_dir_all(&folder);
    let (mut output, mut ledger) = run("reference", &folder);
    let undeclared =
        |outcome: &Outcome| matches!(outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
    let unseen =
        |outcome: &Outcome| matches!(outcome, Outcome::Skip { reason: SkipReason::NotObservable, .. });
    let fine = |outcome: &Outcome| *outcome == Outcome::Pass || undeclared(outcome) || unseen(outcome);
    let failed: Vec<&str> =
        ledger.entries.iter().filter(|entry| !fine(&entry.outcome)).map(|entry| entry.id.as_str()).collect();
    if !failed.is_empty() {
        assert!(only_flaked(&folder, &failed), "{}", others(&ledger, fine));
        // The rest of this test is about a run without failures.
        (output, ledger) = run("reference", &folder);
        assert_eq!(others(&ledger, fine), "", "in a second run");
    }
    // Checks that only real kubelets, or a dual-stack cluster, can show.
    let hidden: Vec<&str> =
        ledger.entries.iter().filter(|e| unseen(&e.outcome)).map(|entry| entry.id.as_str()).collect();
    assert_eq!(hidden, ["NODE-ADDR-12", "SVC-CREATE-13"]);
    // Checks that do not apply because the CCM does not declare the capability, or because they need a soak.
    let left: Vec<&str> =
        ledger.entries.iter().filter(|e| undeclared(&e.outcome)).map(|entry| entry.id.as_str()).collect();
    let (of_plugins, left): (Vec<&str>, Vec<&str>) =
        left.into_iter().partition(|id| id.starts_with("CREDP-"));
    assert_eq!(of_plugins.len(), 29, "its profile names no plugin");
    let (of_proxies, left): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|id| id.starts_with("ANP-"));
    assert_eq!(of_proxies.len(), 22, "its profile names no network proxy");
    let (of_drivers, left): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|id| id.starts_with("CSIM-"));
    assert_eq!(of_drivers.len(), 17, "its profile names no CSI driver");
    let (of_upgrades, left): (Vec<&str>, Vec<&str>) = left.into_iter().partition(|id| id.starts_with("UPG-"));
    assert_eq!(of_upgrades.len(), 20, "the run names no old release");
    assert_eq!(
        left,
        [
            "SVC-CREATE-05.sctp",
            "SVC-CREATE-07.declared",
            "CAP-02",
            "CAP-03",
            "CAP-04",
            "CAP-08.udp",
            "CAP-08.udp-told",
            "HA-08.soak",
            "HA-10.soak",
            "SCALE-03.soak"
        ]
    );
    assert!(ledger.entries.len() > 60, "{} checks", ledger.entries.len());
    assert_eq!(ledger.conformance(), Conformance::Partial, "a simulation certifies nothing");
    assert_eq!(output.status.code(), Some(0));
    replays(&folder);
    verifies(&folder);
}

/// Checks that a report is valid next to its stream and can be attested. An edited report is refused, and so
/// is one without its stream.
fn verifies(folder: &Path) {
    let command = |command: &str, report: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
            .arg(command)
            .arg(report)
            .args(["--events".as_ref(), folder.join("events.jsonl").as_os_str()])
            .output()
            .expect("the command can be run");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let report = folder.join("report.yaml");
    let (code, said) = command("verify", &report);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("VERIFIED: partial: "), "{said}");
    let (code, statement) = command("attest", &report);
    assert_eq!(code, Some(0));
    assert!(
        statement.contains("\"predicateType\":\"https://in-toto.io/attestation/test-result/v0.1\""),
        "{statement}"
    );
    let edited = folder.join("edited.yaml");
    let text = std::fs::read_to_string(&report).expect("the report");
    std::fs::write(&edited, text.replacen("level: MUST", "level: SHOULD", 1)).expect("written");
    let (code, said) = command("verify", &edited);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is of level MUST, not SHOULD"), "{said}");
    assert_eq!(command("attest", &edited), (Some(1), String::new()));
    assert_eq!(command("verify", &folder.join("junit.xml")).0, Some(2));
}

/// Makes the reports again from the stream of events in `folder`, in a separate folder. Returns the exit code
/// and the report.
fn replayed(stream: &Path, out: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .arg("replay")
        .arg(stream)
        .arg("--out")
        .arg(out)
        .output()
        .expect("the command can be run");
    let report = std::fs::read_to_string(out.join("report.yaml")).unwrap_or_default();
    (output.status.code(), report)
}

/// Checks that a stream reproduces the reports of its run byte for byte. A truncated stream gives a report
/// that says so and is not conformant.
fn replays(folder: &Path) {
    let read = |path: &Path| std::fs::read(path).expect("a file of the run");
    let (stream, again, cut) = (folder.join("events.jsonl"), folder.join("again"), folder.join("cut"));
    let (code, _) = replayed(&stream, &again);
    assert_eq!(code, Some(0));
    for name in ["report.yaml", "junit.xml", "badge.json", "report.html"] {
        assert!(read(&folder.join(name)) == read(&again.join(name)), "{name} is another");
    }
    let whole = read(&stream);
    let file = folder.join("cut.jsonl");
    for part in [3, 2] {
        std::fs::write(&file, &whole[..whole.len() / part]).expect("written");
        let (code, report) = replayed(&file, &cut);
        assert_eq!(code, Some(3), "a stream that was cut is not a result");
        assert!(report.contains("the stream of events was cut"), "{report}");
        assert!(report.contains("verdict: not-judged"), "{report}");
    }
    // Every kind of event that such a run has.
    let text = String::from_utf8(whole).expect("text");
    let kinds = [
        "run-began",
        "stage-ended",
        "subject-known",
        "checks-planned",
        "check-began",
        "check-ended",
        "promise-began",
        "promise-met",
        "object-changed",
        "cloud-call",
        "fault-injected",
        "fault-cleared",
        "barrier-raised",
        "barrier-released",
        "run-ended",
    ];
    for kind in kinds {
        assert!(text.contains(&format!("\"type\":\"{kind}\"")), "no {kind}");
    }
}

#[test]
fn without_a_ccm_no_check_passes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, ledger) = run("null", folder.path());
    // Checks that the cluster cannot show are not judged, and checks that only record cannot fail.
    let fails = |outcome: &Outcome| matches!(outcome, Outcome::Fail { .. } | Outcome::Skip { .. });
    let judged = Ledger {
        entries: ledger.entries.into_iter().filter(|entry| entry.level != Level::Info).collect(),
        ..Ledger::default()
    };
    assert_eq!(others(&judged, fails), "");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_wrong_ccm_leaves_no_nodes_for_the_next_ccm() {
    const WRONG: &str = "M-NI-05";
    let folder = tempfile::tempdir().expect("a folder");
    let controls = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["controls", "--cluster", "embedded", "--mutant", WRONG, "--out"])
        .arg(folder.path())
        .output()
        .expect("the command can be run");
    assert!(controls.status.success(), "{}", String::from_utf8_lossy(&controls.stdout));
    let stream = std::fs::read_to_string(folder.path().join(WRONG).join("events.jsonl")).expect("a stream");
    let of_the_cluster =
        |line: &&str| line.contains("\"kind\":\"Node\"") && line.contains("-control-plane\"");
    let last = stream.lines().rfind(|line| of_the_cluster(line) && line.contains("\"taints\""));
    let last = last.expect("a Node of the cluster's own");
    assert!(last.contains("node.cloudprovider.kubernetes.io/uninitialized"), "{last}");
}
