//! A CCM whose Pods run on a management cluster: correct ones pass, faulty ones and a missing one do not, and
//! other environments refuse such a profile.

use harness_core::ledger::{Ledger, Outcome, SkipReason};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Checks that involve the CCM's Pods, its account or its boot: trials with other flags and rights, a
/// replaced credential, a leader that is killed, frozen and terminated, more replicas, ports, logs; and one
/// check each of Nodes, Services and routes.
const SAMPLE: &[&str] = &[
    "AUTH-02",
    "AUTH-13",
    "AUTH-21",
    "AUTH-22",
    "AUTH-24",
    "AUTH-25",
    "AUTH-26",
    "BOOT-DYN-*",
    "FLAG-02",
    "HA-01",
    "HA-04",
    "HA-08",
    "HA-16",
    "NODE-INIT-01",
    "NODE-INIT-18",
    "OBS-*",
    "ROUTE-01",
    "SVC-CREATE-02",
];

/// Checks that need the CCM's Pods to be in the cluster that it serves.
const INSIDE: &[&str] = &["BOOT-DYN-02", "BOOT-DYN-05", "BOOT-DYN-09", "BOOT-DYN-10"];

fn command(arguments: &[&str], profile: &Path, checks: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.arg("run").args(arguments).arg("--profile").arg(profile).arg("--out").arg(out);
    for check in checks {
        command.args(["--only", check]);
    }
    command.output().expect("the command can be run")
}

fn run(profile: &Path, checks: &[&str]) -> (Option<i32>, Ledger, TempDir) {
    let out = tempfile::tempdir().expect("a folder");
    let output = command(&["--cluster", "embedded"], profile, checks, out.path());
    let report = out.path().join("report.yaml");
    let text = std::fs::read_to_string(&report)
        .unwrap_or_else(|error| panic!("no report ({error}):\n{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), harness_report::parse(&text, &report).expect("a report"), out)
}

/// The profile of the hosted reference CCM with a change.
fn profile(change: impl Fn(String) -> String) -> TempDir {
    let ccms = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/ccms");
    let text = std::fs::read_to_string(ccms.join("reference-hosted/profile.yaml")).expect("the profile");
    let text = text
        .replace("../reference/", &format!("{}/", ccms.join("reference").display()))
        .replace("- manifests\n", &format!("- {}\n", ccms.join("reference-hosted/manifests").display()));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("profile.yaml"), change(text)).expect("written");
    folder
}

fn ids(ledger: &Ledger, is: impl Fn(&Outcome) -> bool) -> Vec<&str> {
    let mut ids: Vec<&str> =
        ledger.entries.iter().filter(|entry| is(&entry.outcome)).map(|entry| entry.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

fn failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fail { .. })
}

#[test]
fn the_reference_ccm_passes_from_a_management_cluster() {
    let folder = profile(|text| text);
    let (code, ledger, out) = run(folder.path(), SAMPLE);
    let amiss = |outcome: &Outcome| !matches!(outcome, Outcome::Pass | Outcome::Skip { .. });
    let unfinished: Vec<String> = ledger
        .entries
        .iter()
        .filter(|entry| amiss(&entry.outcome))
        .map(|entry| format!("{}: {:?}", entry.id, entry.outcome))
        .collect();
    assert!(unfinished.is_empty() && code == Some(0), "{unfinished:#?}");
    let unseen =
        |outcome: &Outcome| matches!(outcome, Outcome::Skip { reason: SkipReason::NotObservable, .. });
    assert_eq!(ids(&ledger, unseen), INSIDE);
    let passed = ids(&ledger, |outcome| *outcome == Outcome::Pass);
    for shown in [
        "AUTH-02",
        "AUTH-24",
        "BOOT-DYN-01",
        "BOOT-DYN-03",
        "BOOT-DYN-06",
        "BOOT-DYN-06.underway",
        "BOOT-DYN-08",
        "BOOT-DYN-12",
        "HA-04.crash",
        "HA-04.frozen",
        "HA-04.partition",
        "HA-08.partition",
        "HA-16.long",
        "HA-16.short",
    ] {
        assert!(passed.contains(&shown), "{shown} is not among {passed:?}");
    }
    // Its Pods are in the management cluster, and nowhere else.
    let stream = std::fs::read_to_string(out.path().join("events.jsonl")).expect("a stream");
    let events = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let places: BTreeSet<String> = events
        .map(|line| line["event"].clone())
        .filter(|event| event["name"].as_str().is_some_and(|name| name.starts_with("reference-ccm")))
        .filter_map(|pod| pod["changed"]["node"].as_str().map(str::to_owned))
        .collect();
    let hosted = |place: &String| place.ends_with("-management-control-plane");
    assert!(!places.is_empty() && places.iter().all(hosted), "{places:?}");
}

#[test]
fn a_wrong_ccm_does_not_pass_from_a_management_cluster_and_none_does_not_either() {
    let mutant = |id: &str| {
        profile(|text| {
            let text = text.replace("command: reference-ccm", "command: reference-ccm-mutant");
            format!("{text}environment: {{REFERENCE_CCM_MUTANT: {id}}}\nbudgets: {{boot: 15s}}\n")
        })
    };
    for (id, checks) in
        [("M-NI-12", &["BOOT-DYN-03", "BOOT-DYN-04", "NODE-INIT-18"][..]), ("M-AU-13", &["AUTH-13"])]
    {
        let (code, ledger, _out) = run(mutant(id).path(), checks);
        assert_eq!((code, ids(&ledger, failed)), (Some(1), checks.to_vec()), "{id}");
    }
    let unhosted = profile(|text| {
        let (before, rest) = text.split_once("image:").expect("an image");
        let after = &rest[rest.find("cloud:").expect("a cloud")..];
        format!("{before}manifests: []\n{after}")
    });
    let checks = ["BOOT-DYN-01", "HA-01.elected", "NODE-INIT-01", "SVC-CREATE-02"];
    let (code, ledger, _out) = run(unhosted.path(), &checks);
    assert_eq!((code, ids(&ledger, failed)), (Some(1), checks.to_vec()));
}

#[test]
fn where_no_management_cluster_can_be_made_a_hosted_ccm_is_refused_before_anything_starts() {
    let (folder, out) = (profile(|text| text), tempfile::tempdir().expect("a folder"));
    let kubeconfig = folder.path().join("kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: c, users: [{name: c, user: {}}],\n\
                clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}],\n\
                contexts: [{name: c, context: {cluster: c, user: c}}]}\n";
    std::fs::write(&kubeconfig, text).expect("written");
    let kubeconfig = kubeconfig.to_str().expect("text");
    let arguments = ["--cluster", "existing", "--kubeconfig", kubeconfig];
    let output = command(&arguments, folder.path(), &["NODE-INIT-01"], out.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let why = "profile.yaml: deployment: 'hosted' needs a management cluster for the CCM's Pods, which backend 'existing'";
    assert!(said.contains(why), "{said}");
}
