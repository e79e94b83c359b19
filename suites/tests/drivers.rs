//! A cloud of one's own in a run: the driver that `init cloud` writes, and drivers that are none.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// Checks that need machines, inventory and objects, the last but one in an environment of its own, and one that needs a
/// journal as well.
const CHECKS: [&str; 6] =
    ["NODE-INIT-04", "SVC-CREATE-02", "SVC-DEL-03", "ROUTE-04.stray", "BOOT-DYN-12", "NODE-INIT-26"];

fn program(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env("TMPDIR", folder);
    command.output().expect("the program can be run")
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What `init cloud` writes, in a folder of its own.
fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = program(folder.path(), &["init", "cloud", "acme", "--driver", "python"]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let made = folder.path().join("acme");
    (folder, made)
}

fn run(folder: &Path) -> Output {
    let chosen = CHECKS.iter().flat_map(|check| ["--only", *check]);
    let arguments = ["run", "--cluster", "embedded", "--profile", "./acme", "--out", "results"];
    program(folder, &Vec::from_iter(arguments.into_iter().chain(chosen)))
}

/// That a run has left neither folder nor process.
fn nothing_is_left(folder: &Path) {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let left: Vec<_> =
        entries.map(|entry| entry.file_name()).filter(|name| name != "acme" && name != "results").collect();
    assert!(left.is_empty(), "{left:?}");
    let ours = format!("{}/", folder.display());
    for entry in std::fs::read_dir("/proc").expect("Linux has it").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains(&ours), "{}", String::from_utf8_lossy(&line));
    }
}

#[test]
fn the_skeleton_passes_its_check_and_carries_a_run() {
    let (folder, made) = made();
    let line =
        ["python3", "acme/driver.py", "--listen", "${DRIVER_LISTEN}", "--token-file", "${DRIVER_TOKEN_FILE}"];
    let check =
        program(folder.path(), &Vec::from_iter(["driver", "check", "--command"].into_iter().chain(line)));
    let said = words(&check);
    assert_eq!(check.status.code(), Some(0), "{said}");
    for part in ["driver acme", "15 of 15 promises kept", "journal       no, not observable without it: "] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(std::fs::read_to_string(made.join("driver.py")).expect("a driver").lines().count() <= 300);
    let ran = run(folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", words(&ran));
    let report = std::fs::read_to_string(folder.path().join("results/report.yaml")).expect("a report");
    assert!(report.contains(r#"driver: "acme: machines, objects, inventory""#), "by whose eyes it was");
    assert!(report.contains("the cloud's driver acme lacks journal"));
    assert!(words(&ran).contains("5 passed; 0 failed"), "{}", words(&ran));
    nothing_is_left(folder.path());
}

/// Checks that need a journal, faults by the names of an object, and barriers.
const RECORDED: [&str; 6] = [
    "NODE-INIT-26",
    "NODE-INIT-10.503",
    "NODE-LIFE-03.malformed",
    "SVC-DEL-02",
    "SVC-CREATE-04.lost-answer",
    "SVC-CREATE-01",
];

#[test]
fn a_proxy_gives_the_skeleton_what_it_lacks() {
    let (folder, made) = made();
    let profile = std::fs::read_to_string(made.join("profile.yaml")).expect("a profile");
    let text = profile.replace("# proxy: {routes: routes.yaml}", "proxy: {routes: routes.yaml}");
    std::fs::write(made.join("profile.yaml"), text).expect("written");
    let chosen: Vec<&str> = RECORDED.iter().flat_map(|check| ["--only", *check]).collect();
    let arguments = ["run", "--cluster", "embedded", "--profile", "./acme", "--out", "results"];
    let ran = program(folder.path(), &[&arguments[..], &chosen].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", words(&ran));
    let report = std::fs::read_to_string(folder.path().join("results/report.yaml")).expect("a report");
    assert!(
        report.contains("acme behind the recording proxy: machines, objects, inventory, journal"),
        "{report}"
    );
    assert!(words(&ran).contains("6 passed; 0 failed"), "{}", words(&ran));
    nothing_is_left(folder.path());
}

#[test]
fn a_driver_that_is_none_ends_the_run_with_its_words_and_nothing_is_left() {
    let (folder, made) = made();
    let profile = std::fs::read_to_string(made.join("profile.yaml")).expect("a profile");
    let line = profile.lines().find(|line| line.trim().starts_with("command: [python3")).expect("a command");
    for (other, code, said) in [
        (
            "[./no-such-driver]",
            3,
            "the cloud's driver './no-such-driver' cannot be started in ./acme: No such file",
        ),
        (
            "[sh, -c, 'echo no licence; exit 4']",
            3,
            "ended with exit status: 4 before it answered; its last lines:\nno licence",
        ),
        ("[]", 2, "cloud.driver.command: is empty; write the program and its arguments"),
    ] {
        let text = profile.replace(line.trim(), &format!("command: {other}"));
        std::fs::write(made.join("profile.yaml"), text).expect("written");
        let ran = run(folder.path());
        assert_eq!(ran.status.code(), Some(code), "{}", words(&ran));
        assert!(words(&ran).contains(said), "{said} is not in {}", words(&ran));
        nothing_is_left(folder.path());
    }
}
