//! `explore`, as a user starts it: on the reference CCM, on a mutant of it, with findings that are replayed, and with
//! wrong input.

use std::io::{BufRead, BufReader};
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
    let faults = ["--pattern", "answer-lost,killed-after,unseen,conflict"];
    let scenarios = ["--scenario", "quick-edits,node-life", "--require-clean", "--jobs", "6"];
    let output = explore(folder.path(), &[faults.as_slice(), &scenarios].concat());
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let trials = std::fs::read_to_string(folder.path().join("conformance-results/explore/explore.json"));
    let trials: serde_json::Value = serde_json::from_str(&trials.expect("the file of trials")).expect("JSON");
    let all = trials["trials"].as_array().expect("trials");
    let with = |outcome: &str| all.iter().filter(|trial| trial["outcome"] == outcome).count();
    assert!(all.len() > 20, "{said}");
    assert_eq!(with("agrees") + with("not-reached"), all.len(), "{said}");
    assert!(with("not-reached") * 10 < all.len(), "points are found again: {said}");
}

#[test]
fn a_bug_behind_a_fault_is_found_and_its_file_reproduces_it() {
    // M-SV-07 creates a second load balancer when the answer to the first creation was lost.
    let folder = tempfile::tempdir().expect("a folder");
    let narrow = ["--scenario", "service-life", "--pattern", "answer-lost", "--jobs", "4"];
    let mutant = ["--mutant", "M-SV-07", "--require-clean"];
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
fn wrong_input_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("finding.yaml");
    std::fs::write(&file, "kind: Finding\ncolour: red\n").expect("written");
    let cases: [(&[&str], &str); 5] = [
        (&["--scenario", "dance"], "unknown scenario 'dance'"),
        (&["--pattern", "dance"], "invalid value 'dance'"),
        (&["--budget", "5"], "needs a unit"),
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
    assert!(rest.iter().any(|line| line.contains("trials in")), "the summary is there: {rest:#?}");
    assert!(folder.path().join("conformance-results/explore/explore.json").exists(), "{rest:#?}");
}
