//! The most common first run: a CCM whose program ends. Its user hears within ten seconds with what it ended, how often it was
//! restarted and what it wrote last, and the run does not wait for it in silence.

use harness_core::ledger::{Ledger, Outcome};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// Within which the user hears of an end.
const HEARS: Duration = Duration::from_secs(10);
/// Within which a run of a CCM that only ends is over: three starts with a kubelet's pauses between them, and the rest.
const OVER: Duration = Duration::from_secs(50);
/// The first words of what the user hears.
const ENDED: &str = "the CCM under test ended with ";

/// A run, from the moment at which its environment was up.
struct Ran {
    code: Option<i32>,
    /// When the user first heard of an end.
    heard: Option<Duration>,
    took: Duration,
    said: String,
    ledger: Option<Ledger>,
}

/// The program of a CCM in a folder of its own.
fn ccm(text: &[u8], mode: u32) -> (TempDir, PathBuf) {
    // Not below the folder of temporary files, which a run may keep from its CCM.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = folder.path().join("ccm");
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, PermissionsExt::from_mode(mode)).expect("its mode");
    (folder, program)
}

fn run(program: &Path, folder: &Path) -> Ran {
    let out = folder.join("out");
    let mut child = Command::new(PROGRAM)
        .args(["run", "--cluster", "embedded", "--profile", "reference", "--only", "NODE-INIT-01"])
        .arg("--binary")
        .arg(program)
        .arg("--out")
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be run");
    let (mut began, mut heard, mut said) = (Instant::now(), None, String::new());
    for line in BufReader::new(child.stderr.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        if line.contains("nodes known to the cloud") {
            began = Instant::now();
        }
        if line.starts_with(ENDED) {
            heard.get_or_insert(began.elapsed());
        }
        said.push_str(&format!("{line}\n"));
    }
    let mut tests = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut tests).expect("text");
    let code = child.wait().expect("it can be waited for").code();
    let report = out.join("report.yaml");
    let ledger = fs::read_to_string(&report).ok();
    let ledger = ledger.map(|text| harness_report::parse(&text, &report).expect("a report of this version"));
    Ran { code, heard, took: began.elapsed(), said: format!("{said}{tests}"), ledger }
}

/// That a CCM whose program ends so is told of, and the run over early.
fn is_told(script: &str, with: &str, wrote: &str, within: Duration) {
    let (folder, program) = ccm(script.as_bytes(), 0o755);
    let ran = run(&program, folder.path());
    let said = &ran.said;
    let heard = ran.heard.unwrap_or_else(|| panic!("nobody heard of it:\n{said}"));
    assert!(heard < within, "heard after {heard:?}:\n{said}");
    let first = said.lines().find(|line| line.starts_with(ENDED)).expect("one");
    // The first restart comes at once, so that the first two ends may be seen as one.
    assert!(first.contains(with) && first.contains(", restarted "), "{first}\n{said}");
    assert!(said.contains("restarted once so far"), "{said}");
    assert!(said.matches(wrote).count() >= 2, "'{wrote}' when it ended and at the end:\n{said}");
    assert!(ran.took < OVER, "it took {:?}:\n{said}", ran.took);
    assert_eq!(ran.code, Some(1), "{said}");
    assert!(said.contains("ended 3 times, last with"), "{said}");
    let ledger = ran.ledger.expect("a report");
    let outcome = &ledger.entries.iter().find(|entry| entry.id == "NODE-INIT-01").expect("judged").outcome;
    assert!(matches!(outcome, Outcome::Blocked { by, .. } if by == "OBS-10"), "{outcome:?}\n{said}");
}

#[test]
fn a_ccm_that_prints_an_error_and_exits() {
    let script = "#!/bin/sh\necho 'error: unknown flag --cluster-cidr' >&2\nexit 3\n";
    is_told(script, "exit code 3 after 0 s", "\n    error: unknown flag --cluster-cidr", HEARS);
}

#[test]
fn a_ccm_that_crashes_after_five_seconds() {
    let script =
        "#!/bin/sh\necho 'connecting to the cloud'\nsleep 5\necho 'panic: nil pointer' >&2\nexit 2\n";
    is_told(script, "exit code 2 after 5 s", "\n    panic: nil pointer", HEARS);
}

#[test]
fn a_ccm_that_exits_silently() {
    for code in [1, 0] {
        let script = format!("#!/bin/sh\nexit {code}\n");
        is_told(&script, &format!("exit code {code} after 0 s"), "\n  it wrote nothing", HEARS);
    }
}

#[test]
fn a_ccm_that_is_killed_by_a_signal() {
    // The first process of its namespace is spared signals of its own making: this is what a container's shell reports.
    let script = "#!/bin/sh\nsh -c 'kill -KILL $$'\nexit $?\n";
    is_told(script, "exit code 137 (SIGKILL)", "\n  ", HEARS);
}

#[test]
fn a_ccm_whose_interpreter_is_not_there() {
    is_told("#!/nowhere/interpreter\n", "exit code 127", "\n  127 usually means", HEARS);
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
        assert!(ran.took < Duration::from_secs(5) && ran.ledger.is_none(), "{}", ran.said);
    }
}

#[test]
fn a_ccm_that_works_at_its_third_start_is_judged() {
    // A Pod's home stays as long as the Pod, whatever becomes of its containers.
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
