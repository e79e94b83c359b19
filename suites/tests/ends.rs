//! However a run ends, nothing of it is left, and nothing that belongs to others is removed.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");

/// The running program, with a folder of its own for temporary files.
struct Going {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: String,
    folder: TempDir,
}

/// How the program ended.
struct Ended {
    code: Option<i32>,
    said: String,
    /// Its leftovers: files in its folder, and processes that name the folder.
    left: Vec<String>,
    report: Option<String>,
}

impl Going {
    fn begin(arguments: &[&str], output: Stdio) -> Going {
        Going::begin_within("true", arguments, output)
    }

    /// Starts the program with limits that a line of shell sets.
    fn begin_within(limits: &str, arguments: &[&str], output: Stdio) -> Going {
        let folder = tempfile::tempdir().expect("a folder");
        // If the test itself was started by `nohup`, SIGHUP would be ignored from the start.
        let mut child = Command::new("bash")
            .args(["-c", &format!("{limits}; exec \"$@\""), "bash"])
            .args(["env", "--default-signal=HUP", PROGRAM])
            .args(arguments)
            .args(if ["run", "controls"].contains(&arguments[0]) {
                vec!["--out".into(), folder.path().join("out")]
            } else {
                Vec::new()
            })
            .env("TMPDIR", folder.path())
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        Going { child, lines, said: String::new(), folder }
    }

    /// Starts a run on the embedded cluster, and waits until its environment is up.
    fn run() -> Going {
        Going::run_of("reference")
    }

    /// The same with another profile.
    fn run_of(profile: &str) -> Going {
        let arguments = ["run", "--cluster", "embedded", "--profile", profile, "--suite", "taint-removal"];
        let mut going = Going::begin(&arguments, Stdio::null());
        going.until("nodes known to the cloud");
        going
    }

    fn until(&mut self, what: &str) {
        for line in self.lines.by_ref() {
            let line = line.expect("text");
            self.said.push_str(&format!("{line}\n"));
            if line.contains(what) {
                return;
            }
        }
        panic!("it ended before it said '{what}':\n{}", self.said);
    }

    fn signal(&self, signal: &str) {
        signal_to(self.child.id(), signal);
    }

    /// Waits until the program has ended, and with it every process that can still write to its standard error.
    fn end(mut self) -> Ended {
        let code = self.child.wait().expect("it can be waited for").code();
        for line in self.lines.by_ref() {
            self.said.push_str(&format!("{}\n", line.expect("text")));
        }
        let files = std::fs::read_dir(self.folder.path()).expect("a folder").flatten();
        let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut left: Vec<String> = files.filter(|name| name.contains("ccm-conformance")).collect();
        left.extend(
            processes()
                .into_iter()
                .map(|(_, line)| line)
                .filter(|line| line.contains(&format!("{}/", self.folder.path().display()))),
        );
        let report = std::fs::read_to_string(self.folder.path().join("out/report.yaml")).ok();
        Ended { code, said: self.said, left, report }
    }
}

fn signal_to(process: u32, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(sent.expect("kill can be run").success());
}

/// All processes: number and command line.
fn processes() -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("Linux has it").flatten();
    let process = |name: &str| {
        let line = std::fs::read(format!("/proc/{name}/cmdline")).ok()?;
        Some((name.parse().ok()?, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    entries.filter_map(|entry| process(entry.file_name().to_str()?)).collect()
}

#[test]
fn a_signal_ends_a_run_and_nothing_is_left() {
    for signal in ["HUP", "TERM", "QUIT"] {
        let going = Going::run();
        going.signal(signal);
        let ended = going.end();
        assert_eq!((ended.code, ended.left), (Some(130), Vec::new()), "{signal}:\n{}", ended.said);
    }
}

#[test]
fn a_signal_ends_an_exploration_with_many_clusters_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let arguments = ["explore", "--jobs", "12", "--budget", "5m", "--out", &out];
    let mut going = Going::begin(&arguments, Stdio::null());
    going.until("nodes known to the cloud");
    // By then trials are in progress, about which an exploration says nothing.
    assert!(Command::new("sleep").arg("6").status().expect("it can be run").success());
    going.signal("INT");
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(130), Vec::new()), "{}", ended.said);
    assert!(!ended.said.contains("cleanup did not end"), "{}", ended.said);
}

#[test]
fn checks_unjudged_because_of_a_signal_have_not_failed() {
    let arguments = ["run", "--cluster", "embedded", "--suite", "leader-election-failover"];
    let mut going = Going::begin(&arguments, Stdio::piped());
    let output = going.child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.starts_with("running ")), "it never began");
    going.signal("INT");
    let said = lines.collect::<Vec<_>>().join("\n");
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(130), Vec::new()), "{}", ended.said);
    assert!(said.contains("(interrupted)") && !said.contains("FAIL "), "{said}");
}

#[test]
fn a_mutant_that_a_signal_kept_from_being_judged_is_not_missed() {
    let mut going =
        Going::begin(&["controls", "--cluster", "embedded", "--mutant", "M-NI-02"], Stdio::null());
    going.until("nodes known to the cloud");
    going.signal("INT");
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(130), Vec::new()), "{}", ended.said);
    assert!(ended.said.contains("\nnothing was judged in "), "{}", ended.said);
}

#[test]
fn a_run_that_is_killed_is_taken_away_by_its_reaper() {
    // A hosted CCM has a second cluster.
    for profile in ["reference", "reference-hosted"] {
        let going = Going::run_of(profile);
        going.signal("KILL");
        let ended = going.end();
        assert_eq!((ended.code, ended.left), (None, Vec::new()), "{profile}: {}", ended.said);
        assert!(ended.said.contains("its reaper has removed"), "{profile}: {}", ended.said);
    }
}

#[test]
fn a_second_signal_leaves_the_rest_to_the_reaper_and_says_so() {
    let mut going = Going::run();
    going.signal("INT");
    going.until("interrupted");
    going.signal("TERM");
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(130), Vec::new()), "{}", ended.said);
    // However early the run ends, its reports are written.
    let report = ended.report.expect("there is a report");
    assert!(report.contains("verdict: not-judged") && report.contains("interrupted"), "{report}");
}

#[test]
fn a_run_that_may_open_few_files_begins_nothing() {
    let arguments = ["run", "--cluster", "embedded", "--only", "NODE-INIT-01"];
    let ended = Going::begin_within("ulimit -n 16", &arguments, Stdio::null()).end();
    assert_eq!((ended.code, ended.left), (Some(3), Vec::new()), "{}", ended.said);
    assert!(ended.said.contains("may open only 16 files, but a run needs 256"), "{}", ended.said);
}

#[test]
fn a_run_that_may_write_small_files_only_names_the_file_and_ends_in_order() {
    let arguments = ["run", "--cluster", "embedded", "--only", "NODE-INIT-01"];
    let ended = Going::begin_within("ulimit -f 16", &arguments, Stdio::null()).end();
    assert_eq!((ended.code, ended.left), (Some(3), Vec::new()), "{}", ended.said);
    assert!(ended.said.contains("could not be written: File too large"), "{}", ended.said);
    assert!(ended.said.contains("events.jsonl"), "{}", ended.said);
}

#[test]
fn a_cluster_that_was_killed_with_its_reaper_is_found_by_clean() {
    let place = tempfile::tempdir().expect("a folder");
    let kubeconfig = place.path().join("kubeconfig");
    let arguments = ["cluster", "embedded", "--kubeconfig", kubeconfig.to_str().expect("text")];
    let mut going = Going::begin(&arguments, Stdio::piped());
    let output = going.child.stdout.take().expect("a pipe");
    BufReader::new(output).lines().next().expect("it is up").expect("text");
    let clean = |folder: &Path| {
        let mut command = Command::new(PROGRAM);
        command.arg("clean").env("TMPDIR", folder).env("DOCKER_HOST", "unix:///nowhere");
        let output = command.output().expect("clean can be run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let folder = going.folder.path().to_owned();
    let (_, said) = clean(&folder);
    assert!(said.contains("left alone: it is still running: process") && kubeconfig.exists(), "{said}");
    let reaper = format!(" reap {} ", going.child.id());
    let found = processes().into_iter().find(|(_, line)| line.contains(&reaper)).expect("it has a reaper");
    signal_to(found.0, "KILL");
    going.signal("KILL");
    going.child.wait().expect("it ends");
    assert!(kubeconfig.exists(), "no process was left to remove it");
    let (code, said) = clean(&folder);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("removed ") && !kubeconfig.exists(), "{said}");
    assert!(going.end().left.is_empty());
}

#[test]
fn an_output_that_cannot_be_written_ends_the_run_in_order() {
    let going = Going::begin(&["run", "--cluster", "embedded", "--only", "NODE-INIT-01"], {
        File::options().write(true).open("/dev/full").expect("Linux has it").into()
    });
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(3), Vec::new()), "{}", ended.said);
    assert!(ended.said.contains("standard output cannot be written"), "{}", ended.said);
    assert!(!ended.said.contains("panicked"), "{}", ended.said);

    let mut going = Going::begin(&["run", "--cluster", "embedded", "--only", "NODE-INIT-01"], Stdio::piped());
    // The reader of standard output closes it.
    drop(going.child.stdout.take());
    let ended = going.end();
    assert_eq!((ended.code, ended.left), (Some(3), Vec::new()), "{}", ended.said);

    for command in ["list", "plan"] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let status = Command::new(PROGRAM).arg(command).stdout(full).stderr(Stdio::null()).status();
        assert_eq!(status.expect("it can be run").code(), Some(3), "{command}");
    }
}

#[test]
fn results_of_others_stay() {
    let out = tempfile::tempdir().expect("a folder");
    let mine = out.path().join("evidence/mine.txt");
    std::fs::create_dir(out.path().join("evidence")).expect("a folder");
    std::fs::write(&mine, "of the user").expect("a file");
    let run = || {
        let arguments = ["run", "--cluster", "embedded", "--only", "NODE-INIT-01", "--out"];
        let output = Command::new(PROGRAM).args(arguments).arg(out.path()).output().expect("it can be run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("was not created by a run of this version") && mine.exists(), "{said}");
    std::fs::remove_dir_all(out.path().join("evidence")).expect("removed");
    // Another run uses the folder.
    let lock = File::open(out.path()).expect("a folder");
    lock.lock().expect("no other process has it");
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another run is writing its results there"), "{said}");
}

#[test]
fn a_run_that_cannot_start_leaves_the_results_of_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/ccms/reference/manifests");
    let ended = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
            .args(arguments)
            .output()
            .expect("the program runs")
    };
    let made = ended(&["init", "--manifests", manifests, "--name", "acme", "--out", &path("acme")]);
    assert!(made.status.success(), "{made:?}");
    std::fs::create_dir(path("out")).expect("a folder");
    std::fs::write(path("out/events.jsonl"), "earlier\n").expect("a file");
    // The profile names no image, and no program is given.
    let run = ended(&["run", "--cluster", "embedded", "--profile", &path("acme"), "--out", &path("out")]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("pass its program with '--cluster embedded --binary PATH'"), "{said}");
    assert_eq!(std::fs::read_to_string(path("out/events.jsonl")).expect("a file"), "earlier\n");
}
