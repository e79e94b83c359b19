//! `explore`, as a user starts it: on the reference CCM, on a mutant of it, with findings that are replayed, and with
//! wrong input.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn explore(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_ccm-conformance");
    let mut command = Command::new(program);
    command.arg("explore").args(arguments).current_dir(folder);
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn nothing_is_found_in_the_reference_ccm() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--pattern", "answer-lost,stale-start,taken-over-after", "--random", "1"];
    let scenarios = ["--scenario", "node-life,service-life,random-1-1", "--require-clean", "--jobs", "8"];
    let output = explore(folder.path(), &[&faults[..], &scenarios, &["--pairs", "6"]].concat());
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let trials = std::fs::read_to_string(folder.path().join("conformance-results/explore/explore.json"));
    let trials: serde_json::Value = serde_json::from_str(&trials.expect("the file of trials")).expect("JSON");
    let all = trials["trials"].as_array().expect("trials");
    let with = |outcome: &str| all.iter().filter(|trial| trial["outcome"] == outcome).count();
    assert!(all.len() > 20, "{said}");
    assert_eq!(with("agrees") + with("not-reached"), all.len(), "{said}");
    assert!(with("not-reached") * 10 < all.len(), "points are found again: {said}");
    let pairs = all.iter().filter(|trial| trial["patterns"].as_array().is_some_and(|all| all.len() == 2));
    assert_eq!(pairs.count(), 6, "{said}");
    let page = std::fs::read_to_string(folder.path().join("conformance-results/explore/explore.html"));
    assert!(page.expect("a page").contains("Nothing was found"), "{said}");
}

#[test]
fn parts_of_an_exploration_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["1", "2"] {
        let narrow = ["--scenario", "node-life", "--pattern", "failure,down", "--pairs", "0", "--jobs", "3"];
        let shard = ["--shard", &format!("{part}/2"), "--out", part];
        let output = explore(folder.path(), &[&narrow[..], &shard].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    let mut merge = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    let merge = merge.args(["merge", "1", "2", "--out", "all"]).current_dir(folder.path());
    let merged = merge.output().expect("the program starts");
    assert_eq!(merged.status.code(), Some(0), "{}", said(&merged));
    let read = |folder: &Path, name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(folder.join(name).join("explore.json")).expect("results");
        serde_json::from_str(&text).expect("JSON")
    };
    let count = |name: &str| read(folder.path(), name)["trials"].as_array().expect("trials").len();
    assert_eq!(count("all"), count("1") + count("2") - 1, "the scenario itself is in both");
    assert!(count("1") > 1 && count("2") > 1, "{} and {}", count("1"), count("2"));
}

#[test]
fn a_bug_behind_a_fault_is_found_and_its_file_reproduces_it() {
    // M-SV-07 creates a second load balancer when the answer to the first creation was lost.
    let folder = tempfile::tempdir().expect("a folder");
    let narrow = ["--scenario", "service-life", "--pattern", "answer-lost", "--jobs", "4"];
    let mutant = ["--mutant", "M-SV-07", "--require-clean", "--pairs", "0"];
    let output = explore(folder.path(), &[narrow.as_slice(), &mutant].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let findings = folder.path().join("conformance-results/explore/findings");
    let first =
        std::fs::read_dir(&findings).expect("findings").next().expect("a finding").expect("readable").path();
    let text = std::fs::read_to_string(&first).expect("a finding");
    assert!(text.contains("times: 3") && text.contains("lb.create"), "{text}");
    let file = first.to_string_lossy().into_owned();
    let again = explore(folder.path(), &["--replay", &file, "--mutant", "M-SV-07", "--out", "again"]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    let correct = explore(folder.path(), &["--replay", &file, "--out", "correct"]);
    assert_eq!(correct.status.code(), Some(0), "{}", said(&correct));
}

#[test]
fn an_exploration_ends_with_its_last_finding_and_with_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let wide = ["--mutant", "M-SV-07", "--pattern", "answer-lost", "--jobs", "6", "--max-findings", "1"];
    let enough = explore(folder.path(), &[&wide[..], &["--out", "enough"]].concat());
    assert_eq!(enough.status.code(), Some(0), "{}", said(&enough));
    let findings = std::fs::read_dir(folder.path().join("enough/findings")).expect("findings").count();
    assert_eq!((findings, said(&enough).matches("  found   ").count()), (1, 1), "{}", said(&enough));
    let began = std::time::Instant::now();
    let short = explore(folder.path(), &["--budget", "10s", "--jobs", "4", "--out", "short"]);
    let took = began.elapsed().as_secs();
    assert!((10..25).contains(&took), "{took} s: {}", said(&short));
    assert!(!said(&short).contains("left behind"), "{}", said(&short));
}

/// The reference CCM as a vendor has its own: a folder with profile and manifests.
fn own_profile(folder: &Path) {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/ccms/reference");
    std::fs::create_dir_all(folder.join("acme/manifests")).expect("a folder");
    std::fs::create_dir_all(folder.join("acme/findings")).expect("a folder");
    for file in std::fs::read_dir(reference.join("manifests")).expect("manifests") {
        let file = file.expect("readable");
        let to = folder.join("acme/manifests").join(file.file_name());
        std::fs::copy(file.path(), to).expect("copied");
    }
    std::fs::copy(reference.join("profile.yaml"), folder.join("acme/profile.yaml")).expect("copied");
}

#[test]
fn findings_in_a_profile_are_tried_first_and_must_be_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    own_profile(folder.path());
    let finding = folder.path().join("acme/findings/second-balancer.yaml");
    let arguments = ["--profile", "./acme", "--scenario", "node-life", "--pattern", "down", "--pairs", "0"];
    std::fs::write(&finding, "kind: Finding\n").expect("written");
    let refused = explore(folder.path(), &arguments);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("second-balancer.yaml"), "{}", said(&refused));
    let text = "apiVersion: ccm-conformance/v1\nkind: Finding\n\
        summary: 'life: the 1st lb.create takes effect and its answer is lost'\n\
        scenario: {name: life, about: A Service., steps: [{create-service: {service: web, ports: [80]}}, settle]}\n\
        faults: [{at: {cloud: {operation: lb.create, nth: 1}}, pattern: answer-lost}]\n\
        differences: [{subject: s, expected: one, actual: two}]\nseen: {times: 3, of: 3}\n";
    std::fs::write(&finding, text).expect("written");
    let output = explore(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let expected = "none of the 1 known findings of the profile was seen again";
    assert!(said(&output).contains(expected), "{}", said(&output));
}

#[test]
fn a_ccm_that_does_not_start_is_not_explored() {
    let folder = tempfile::tempdir().expect("a folder");
    own_profile(folder.path());
    let program = folder.path().join("ends");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let arguments = [
        "--profile",
        "./acme",
        "--binary",
        "./ends",
        "--scenario",
        "node-life",
        "--pairs",
        "0",
        "--require-clean",
    ];
    let output = explore(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the CCM under test does not start to work"), "{}", said(&output));
    assert!(said(&output).contains("CCM: profile reference"), "{}", said(&output));
}

#[test]
fn wrong_input_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("finding.yaml");
    std::fs::write(&file, "kind: Finding\ncolour: red\n").expect("written");
    let cases: [(&[&str], &str); 9] = [
        (&["--scenario", "dance"], "unknown scenario 'dance'"),
        (&["--pattern", "dance"], "invalid value 'dance'"),
        (&["--budget", "5"], "needs a unit"),
        (&["--budget", "0s"], "nothing would be tried"),
        (&["--cluster", "existing"], "invalid value 'existing'"),
        (&["--shard", "3/2"], "expected K/N"),
        (&["--scenario", "random-1-9"], "unknown scenario 'random-1-9'"),
        (&["--replay", "finding.yaml"], "finding.yaml"),
        (&["--mutant", "M-XX-01"], "M-XX-01"),
    ];
    for (arguments, expected) in cases {
        let output = explore(folder.path(), arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    assert!(!folder.path().join("conformance-results").exists());
}

#[test]
fn an_interrupted_exploration_keeps_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"));
    command.args(["explore", "--jobs", "6"]).current_dir(folder.path()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("the program starts");
    let mut lines = BufReader::new(running.stderr.take().expect("piped")).lines();
    let is_up = |line: &String| line.contains("nodes known to the cloud");
    assert!(lines.by_ref().map_while(Result::ok).any(|line| is_up(&line)), "an environment comes up");
    let id = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let code = running.wait().expect("it ends").code();
    assert_eq!(code, Some(130), "{rest:#?}");
    assert!(rest.iter().any(|line| line.contains("tried ")), "the summary is there: {rest:#?}");
    assert!(folder.path().join("conformance-results/explore/explore.json").exists(), "{rest:#?}");
}
