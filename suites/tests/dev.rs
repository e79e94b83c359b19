//! `dev` judges a CCM again when its program changes, shows builds that fail, and ends without leftovers.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// What it prints when a round is over.
const WAITS: &str = "waiting for a change";

/// A running `dev`, with the folder of its CCM.
struct Session {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    folder: TempDir,
}

impl Session {
    fn begin(arguments: &[&str]) -> Session {
        // Programs of the embedded cluster see their own folder, but not the one for temporary files.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        fs::hard_link(PROGRAM, folder.path().join("program")).expect("the same file system");
        write_ccm(folder.path(), "");
        let mut child = Command::new(PROGRAM)
            .args(["dev", "--only", "NODE-INIT-01", "--binary", "acme-ccm", "--out", "out"])
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        Session { child, lines, folder }
    }

    /// What it prints until it prints this.
    fn until(&mut self, what: &str) -> String {
        let mut said = String::new();
        for line in self.lines.by_ref() {
            let line = line.expect("text");
            said.push_str(&format!("{line}\n"));
            if line.contains(what) {
                return said;
            }
        }
        panic!("it ended before it said '{what}':\n{said}");
    }

    /// How the check has ended, in the report of the last round.
    fn outcome(&self) -> String {
        let report = fs::read_to_string(self.folder.path().join("out/report.yaml")).expect("a report");
        let check = report.split("\n- id: NODE-INIT-01\n").last().unwrap_or_default();
        let line = check.lines().find_map(|line| line.trim().strip_prefix("outcome: "));
        line.unwrap_or_default().to_owned()
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        let rest: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let code = self.child.wait().expect("it can be waited for").code();
        assert_eq!(code, Some(130), "{}", rest.join("\n"));
    }
}

/// Writes a CCM that does this first.
fn write_ccm(folder: &Path, first: &str) {
    let program = folder.join("acme-ccm");
    let text = format!("#!/bin/sh\n{first}\nexec {}/program reference-ccm \"$@\"\n", folder.display());
    // In place of the old one at once, as compilers do it.
    let new = folder.join(".acme-ccm.new");
    fs::write(&new, text).expect("written");
    fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).expect("its mode");
    fs::rename(&new, &program).expect("the same folder");
}

#[test]
fn a_program_that_changes_is_judged_again_and_what_failed_first() {
    let mut session = Session::begin(&[]);
    session.until(WAITS);
    assert_eq!(session.outcome(), "pass");

    write_ccm(session.folder.path(), "echo broken >&2; exit 3");
    let said = session.until(WAITS);
    assert!(said.contains("acme-ccm changed") && said.contains("ended with exit code 3"), "{said}");
    assert_eq!(session.outcome(), "blocked");

    write_ccm(session.folder.path(), "");
    let said = session.until(WAITS);
    // Once because it had failed, and once because it is selected.
    assert_eq!(said.matches("\nrun ").count(), 2, "{said}");
    assert_eq!(session.outcome(), "pass");
    session.end();
}

#[test]
fn a_build_that_fails_judges_nothing() {
    let mut session = Session::begin(&["--build", "test ! -e broken && echo built >> builds"]);
    session.until(WAITS);
    assert_eq!(session.outcome(), "pass");
    fs::remove_file(session.folder.path().join("out/report.yaml")).expect("a report");

    fs::write(session.folder.path().join("broken"), "").expect("written");
    let said = session.until(WAITS);
    assert!(said.contains("error: the build failed (exit code 1)"), "{said}");
    assert!(!session.folder.path().join("out/report.yaml").exists(), "{said}");
    session.end();
}

#[test]
fn a_first_build_that_fails_waits_for_a_change() {
    let mut session = Session::begin(&["--build", "test -e fixed"]);
    let said = session.until(WAITS);
    assert!(said.contains("error: the build failed (exit code 1)"), "{said}");
    fs::write(session.folder.path().join("fixed"), "").expect("written");
    session.until(WAITS);
    assert_eq!(session.outcome(), "pass");
    session.end();
}

#[test]
fn what_it_cannot_do_is_refused() {
    for (arguments, why) in [
        (
            &["dev", "--cluster", "kind"][..],
            "use '--cluster embedded', or 'ccm-conformance run --cluster kind'",
        ),
        (&["dev"], "there is nothing to wait for: the profile is built in, and no program is given"),
        (&["dev", "--binary", "/nope"], "error: --binary: /nope: there is no such file"),
        (
            &["dev", "--binary", "/bin/true", "--build", "exit 4", "--source", "/nope"],
            "error: --source /nope: no file or folder has this path",
        ),
        (&["dev", "--binary", "/bin/true", "--certify"], "error: --certify: embedded is a simulation"),
    ] {
        let output = Command::new(PROGRAM).args(arguments).output().expect("the program can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    }
}
