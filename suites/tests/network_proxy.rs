//! The suite `network-proxy` as a user runs it, without a cluster: the reference proxy, and programs that are
//! not proxies.

use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};
use std::path::Path;
use std::process::{Command, Output};

const PROFILE: &str = "apiVersion: ccm-conformance/v1\nkind: network-proxy\nname: acme\nnetworkProxy:\n  egress: egress.yaml\n  program: [/bin/false]\n";
const EGRESS: &str = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{name: cluster, connection: {proxyProtocol: Direct}}]\n";
/// Checks that need an API server.
const BY_A_SERVER: [&str; 12] = [
    "ANP-03.logs",
    "ANP-03.exec",
    "ANP-03.attach",
    "ANP-03.port-forward",
    "ANP-03.metrics",
    "ANP-03.webhook",
    "ANP-03.aggregated",
    "ANP-04",
    "ANP-05",
    "ANP-06",
    "ANP-08",
    "ANP-10",
];

fn run(profile: &Path, out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.arg("run").arg("--profile").arg(profile).arg("--out").arg(out);
    command.output().expect("the command can be run")
}

fn ledger(out: &Path, output: &Output) -> Ledger {
    let report = out.join("report.yaml");
    let text = std::fs::read_to_string(&report)
        .unwrap_or_else(|error| panic!("no report ({error}):\n{}", String::from_utf8_lossy(&output.stderr)));
    harness_report::parse(&text, &report).expect("a report of this version")
}

fn of_proxies(ledger: &Ledger) -> impl Iterator<Item = &Entry> {
    ledger.entries.iter().filter(|entry| entry.id.starts_with("ANP-"))
}

fn folder(profile: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("profile.yaml"), profile).expect("written");
    std::fs::write(folder.path().join("egress.yaml"), EGRESS).expect("written");
    folder
}

#[test]
fn the_reference_passes_all_that_needs_no_cluster_in_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(Path::new("reference-network-proxy"), folder.path());
    let ledger = ledger(folder.path(), &output);
    let unseen =
        |entry: &Entry| matches!(&entry.outcome, Outcome::Skip { reason: SkipReason::NotObservable, .. });
    let by_a_server: Vec<&str> =
        of_proxies(&ledger).filter(|entry| unseen(entry)).map(|entry| entry.id.as_str()).collect();
    assert_eq!(by_a_server, BY_A_SERVER);
    let failed: Vec<String> = of_proxies(&ledger)
        .filter(|entry| entry.outcome != Outcome::Pass && !unseen(entry))
        .map(|entry| format!("{}: {:?}", entry.id, entry.outcome))
        .collect();
    assert_eq!(failed, [""; 0]);
    assert_eq!(ledger.conformance(), Conformance::Partial);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_program_that_is_none_fails_what_it_is_asked_for_and_says_so() {
    let folder = folder(PROFILE);
    let out = folder.path().join("out");
    let output = run(&folder.path().join("profile.yaml"), &out);
    let ledger = ledger(&out, &output);
    let failed: Vec<&str> = of_proxies(&ledger)
        .filter(|entry| matches!(entry.outcome, Outcome::Fail { .. }))
        .map(|entry| entry.id.as_str())
        .collect();
    assert!(failed.contains(&"ANP-07") && failed.contains(&"ANP-05.agent"), "{failed:?}");
    assert!(!failed.contains(&"ANP-01"), "{failed:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_profile_that_is_wrong_is_refused_with_its_key() {
    for (profile, expected) in [
        (format!("{PROFILE}replicas: 3\n"), "replicas: has no meaning with 'kind: network-proxy'"),
        (PROFILE.replace("egress.yaml", "none.yaml"), "networkProxy.egress: there is no file"),
        (
            PROFILE.replace("  program: [/bin/false]\n", ""),
            "networkProxy: names neither 'manifests' nor a 'program'",
        ),
        (format!("{PROFILE}  manifests: [none]\n"), "networkProxy.manifests[0]: there is no file or folder"),
    ] {
        let folder = folder(&profile);
        let output = run(&folder.path().join("profile.yaml"), &folder.path().join("out"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{expected}: {said}");
    }
}
