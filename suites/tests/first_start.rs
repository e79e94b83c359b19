//! The most common first run: a CCM whose program ends. The run reports at once how it ended, how often it
//! was restarted and its last log lines, and it does not wait for the deadlines of checks.

use harness_core::ledger::{Ledger, Outcome};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// The first words of the message to the user.
const ENDED: &str = "the CCM under test ended with ";

/// The output of a run that has ended.
struct Ran {
    code: Option<i32>,
    said: String,
    ledger: Option<Ledger>,
}

/// Writes the program of a CCM into a folder of its own.
fn ccm(text: &[u8], mode: u32) -> (TempDir, PathBuf) {
    // Not below the folder for temporary files, which a run may hide from its CCM.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = folder.path().join("ccm");
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, PermissionsExt::from_mode(mode)).expect("its mode");
    (folder, program)
}

fn run(program: &Path, folder: &Path) -> Ran {
    run_with("reference", &["--binary".as_ref(), program.as_os_str()], folder)
}

fn run_with(profile: &str, arguments: &[&std::ffi::OsStr], folder: &Path) -> Ran {
    let out = folder.join("out");
    let mut child = Command::new(PROGRAM)
        .args(["run", "--cluster", "embedded", "--profile", profile, "--only", "NODE-INIT-01"])
        .args(arguments)
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be run");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    let mut tests = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut tests).expect("text");
    let code = child.wait().expect("it can be waited for").code();
    let report = out.join("report.yaml");
    let ledger = fs::read_to_string(&report).ok();
    let ledger = ledger.map(|text| harness_report::parse(&text, &report).expect("a report of this version"));
    Ran { code, said: format!("{said}{tests}"), ledger }
}

/// How a CCM's program ended: the text in the report, and the least number of seconds that it ran.
/// Kubernetes' times of a container are whole seconds, so a program that took a few milliseconds may be
/// reported with one second.
struct Ended<'a> {
    with: &'a str,
    after: u64,
}

/// The seconds in "... after 5 s, ...".
fn seconds(report: &str) -> u64 {
    let (_, rest) = report.split_once(" after ").unwrap_or_else(|| panic!("no time in: {report}"));
    rest.split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no seconds in: {report}"))
}

/// Runs a CCM whose program ends, and checks that its end is reported at once and that no check waits for it.
fn is_reported(script: &str, ended: Ended<'_>, wrote: &str) {
    let (folder, program) = ccm(script.as_bytes(), 0o755);
    let ran = run(&program, folder.path());
    let said = &ran.said;
    let first = said.lines().find(|line| line.starts_with(ENDED));
    let first = first.unwrap_or_else(|| panic!("the end of the CCM was not reported:\n{said}"));
    // The first restart is immediate, so the first two ends may be seen as one.
    assert!(first.contains(ended.with) && first.contains(", restarted "), "{first}\n{said}");
    assert!(ended.after <= seconds(first), "{first}\n{said}");
    assert!(said.contains("restarted once so far"), "{said}");
    assert!(said.matches(wrote).count() >= 2, "'{wrote}' when it ended and at the end:\n{said}");
    assert_eq!(ran.code, Some(1), "{said}");
    assert!(said.contains("ended 3 times, last with"), "{said}");
    let ledger = ran.ledger.expect("a report");
    let outcome = &ledger.entries.iter().find(|entry| entry.id == "NODE-INIT-01").expect("judged").outcome;
    assert!(matches!(outcome, Outcome::Blocked { by, .. } if by == "OBS-10"), "{outcome:?}\n{said}");
}

#[test]
fn a_ccm_that_prints_an_error_and_exits() {
    let script = "#!/bin/sh\necho 'error: unknown flag --cluster-cidr' >&2\nexit 3\n";
    is_reported(
        script,
        Ended { with: "exit code 3 after ", after: 0 },
        "\n    error: unknown flag --cluster-cidr",
    );
}

#[test]
fn a_ccm_that_crashes_after_five_seconds() {
    let script =
        "#!/bin/sh\necho 'connecting to the cloud'\nsleep 5\necho 'panic: nil pointer' >&2\nexit 2\n";
    is_reported(script, Ended { with: "exit code 2 after ", after: 5 }, "\n    panic: nil pointer");
}

#[test]
fn a_ccm_that_exits_silently() {
    for code in [1, 0] {
        let script = format!("#!/bin/sh\nexit {code}\n");
        let with = format!("exit code {code} after ");
        is_reported(&script, Ended { with: &with, after: 0 }, "\n  it wrote nothing");
    }
}

#[test]
fn a_ccm_that_is_killed_by_a_signal() {
    // The first process of its namespace is not killed by its own signals. Therefore this program exits as a
    // container's shell does.
    let script = "#!/bin/sh\nsh -c 'kill -KILL $$'\nexit $?\n";
    is_reported(script, Ended { with: "exit code 137 (SIGKILL)", after: 0 }, "\n  ");
}

#[test]
fn a_ccm_whose_interpreter_is_not_there() {
    is_reported(
        "#!/nowhere/interpreter\n",
        Ended { with: "exit code 127", after: 0 },
        "\n  127 usually means",
    );
}

#[test]
fn a_ccm_that_no_node_takes_ends_the_wait_and_its_manifests_are_the_reason() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let profile = folder.path().join("acme");
    fs::create_dir_all(profile.join("manifests")).expect("a folder");
    fs::copy(fixtures.join("ccms/reference/profile.yaml"), profile.join("profile.yaml")).expect("copied");
    let manifests = fixtures.join("bootstrap/mbt-01-no-uninitialized-toleration/ccm.yaml");
    fs::copy(manifests, profile.join("manifests/ccm.yaml")).expect("copied");
    let began = std::time::Instant::now();
    let ran = run_with(&profile.display().to_string(), &[], folder.path());
    assert!(began.elapsed().as_secs() < 45, "it waited for the whole B-START: {}", ran.said);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    let ledger = ran.ledger.expect("a report");
    let outcome = &ledger.entries.iter().find(|entry| entry.id == "NODE-INIT-01").expect("judged").outcome;
    let Outcome::Blocked { by, message } = outcome else { panic!("{outcome:?}\n{}", ran.said) };
    assert_eq!(by, "BOOT-DYN-01", "{message}");
    for part in
        ["it does not tolerate the taint node.cloudprovider.kubernetes.io/uninitialized", "smallest change: "]
    {
        assert!(message.contains(part), "{part}:\n{message}");
        let shown = ran.said.lines().find(|line| line.starts_with("blocked by BOOT-DYN-01: "));
        assert!(shown.is_some_and(|line| line.contains(part)), "{part}:\n{}", ran.said);
    }
}

#[test]
fn a_ccm_that_this_machine_cannot_execute_is_refused_before_anything_is_started() {
    let mut other = vec![0_u8; 64];
    other[..4].copy_from_slice(b"\x7fELF");
    // Number 2 is a SPARC.
    (other[5], other[18]) = (1, 2);
    for (text, mode, why) in [
        (b"#!/bin/sh\nexit 0\n".as_slice(), 0o644, "is not executable"),
        (b"hello\n".as_slice(), 0o755, "is neither an ELF program nor a script"),
        (other.as_slice(), 0o755, "is a program for another machine"),
    ] {
        let (folder, program) = ccm(text, mode);
        let ran = run(&program, folder.path());
        assert_eq!(ran.code, Some(2), "{}", ran.said);
        assert!(ran.said.contains(&format!("{} {why}", program.display())), "{}", ran.said);
        assert!(ran.ledger.is_none(), "{}", ran.said);
    }
}

#[test]
fn a_ccm_that_works_at_its_third_start_is_judged() {
    // A Pod's home directory exists as long as the Pod, whatever happens to its containers.
    let script = r#"#!/bin/sh
echo >> "$HOME/starts"
if [ "$(wc -l < "$HOME/starts")" -le 2 ]; then echo 'not yet'; exit 1; fi
exec "$(dirname "$0")/program" reference-ccm "$@"
"#;
    let (folder, program) = ccm(script.as_bytes(), 0o755);
    fs::hard_link(PROGRAM, folder.path().join("program")).expect("linked");
    let ran = run(&program, folder.path());
    assert_eq!(ran.code, Some(0), "{}", ran.said);
    assert!(ran.said.contains("restarted once so far"), "{}", ran.said);
    let ledger = ran.ledger.expect("a report");
    let entry = ledger.entries.iter().find(|entry| entry.id == "NODE-INIT-01").expect("judged");
    assert_eq!(entry.outcome, Outcome::Pass, "{}", ran.said);
}
