//! A user's own cloud in a run: the driver that `init cloud` writes, and broken drivers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
/// Checks that need machines, inventory and objects (the last but one runs in an environment of its own), and
/// one that also needs a request log.
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

/// The files that `init cloud` writes, in a separate folder.
fn made() -> (tempfile::TempDir, PathBuf) {
    made_in("python")
}

fn made_in(language: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = program(folder.path(), &["init", "cloud", "acme", "--driver", language]);
    assert_eq!(output.status.code(), Some(0), "{}", words(&output));
    let made = folder.path().join("acme");
    (folder, made)
}

fn run(folder: &Path) -> Output {
    let chosen = CHECKS.iter().flat_map(|check| ["--only", *check]);
    let arguments = ["run", "--cluster", "embedded", "--profile", "./acme", "--out", "results"];
    program(folder, &Vec::from_iter(arguments.into_iter().chain(chosen)))
}

/// Checks that a run has left neither a folder nor a process.
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

/// How many checks of a run passed, and how many did not.
fn passed_and_failed(said: &str) -> (usize, usize) {
    let lines = |word: &str| said.lines().filter(|line| line.trim_start().starts_with(word)).count();
    (lines("PASS "), lines("FAIL ") + lines("BLOCKED ") + lines("ERROR "))
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
    for part in ["driver acme", "15 of 15 promises kept", "no; not observable without it, "] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(std::fs::read_to_string(made.join("driver.py")).expect("a driver").lines().count() <= 300);
    let ran = run(folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", words(&ran));
    let report = std::fs::read_to_string(folder.path().join("results/report.yaml")).expect("a report");
    assert!(
        report.contains(r#"driver: "acme: machines, objects, routes, inventory""#),
        "by whose eyes it was"
    );
    assert!(report.contains("the cloud's driver acme lacks journal"));
    assert_eq!(passed_and_failed(&words(&ran)), (5, 0), "{}", words(&ran));
    nothing_is_left(folder.path());
}

#[test]
fn the_skeleton_in_rust_passes_its_check_and_carries_a_run() {
    let (folder, _made) = made_in("rust");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--manifest-path", "acme/Cargo.toml"])
        .args(["--target-dir", "acme/target"])
        .env("RUSTFLAGS", "-Dwarnings")
        .current_dir(folder.path())
        .output()
        .expect("cargo is there");
    assert_eq!(built.status.code(), Some(0), "{}", words(&built));
    for (asked, expected) in [("--help", "usage: driver "), ("--version", "driver 0.1.0")] {
        let driver = folder.path().join("acme/target/release/driver");
        let answer = Command::new(driver).arg(asked).output().expect("the driver can be run");
        assert_eq!(answer.status.code(), Some(0), "{asked}: {}", words(&answer));
        assert!(words(&answer).starts_with(expected), "{asked}: {}", words(&answer));
    }
    let line = ["--listen", "${DRIVER_LISTEN}", "--token-file", "${DRIVER_TOKEN_FILE}"];
    let line = [&["driver", "check", "--command", "./acme/target/release/driver"][..], &line].concat();
    let check = program(folder.path(), &line);
    let said = words(&check);
    assert_eq!(check.status.code(), Some(0), "{said}");
    assert!(said.contains("driver acme") && said.contains("15 of 15 promises kept"), "{said}");
    let ran = run(folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", words(&ran));
    assert_eq!(passed_and_failed(&words(&ran)), (5, 0), "{}", words(&ran));
    nothing_is_left(folder.path());
}

/// Checks that need a request log, faults by object name, and barriers: seven checks, as SVC-DEL-02 has a
/// second claim.
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
        report.contains("acme behind the recording proxy: machines, objects, routes, inventory, journal"),
        "{report}"
    );
    assert_eq!(passed_and_failed(&words(&ran)), (7, 0), "{}", words(&ran));
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
            "the cloud's driver './no-such-driver' cannot be started in ./acme: there is no such program",
        ),
        (
            "[sh, -c, 'echo no licence; exit 4']",
            3,
            "ended with exit code 4 before it answered; its last lines:\nno licence",
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

/// The profile in the folder, with a container of `image` as its driver.
fn driven_by(made: &Path, image: &str, arguments: &[&str]) {
    let profile = std::fs::read_to_string(made.join("profile.yaml")).expect("a profile");
    let line = profile.lines().find(|line| line.trim().starts_with("command: [python3")).expect("a command");
    let container = format!("image: {image}\n    arguments: {arguments:?}");
    std::fs::write(made.join("profile.yaml"), profile.replace(line.trim(), &container)).expect("written");
}

#[test]
fn without_an_engine_a_driver_in_a_container_is_refused_before_anything_is_started() {
    let (folder, made) = made();
    driven_by(&made, "acme/driver:v1", &["--verbose"]);
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--cluster", "embedded", "--profile", "./acme", "--out", "results"]);
    command.current_dir(folder.path()).env("TMPDIR", folder.path());
    command.env("DOCKER_HOST", format!("unix://{}/none.sock", folder.path().display()));
    let ran = command.output().expect("the program can be run");
    assert_eq!(ran.status.code(), Some(2), "{}", words(&ran));
    for part in [
        "acme/profile.yaml: cloud.driver.image: on backend 'embedded' the container of acme/driver:v1 is on this machine's own \
         network, and no Docker engine: the socket ",
        "or start the driver as a program, with 'cloud.driver.command'",
    ] {
        assert!(words(&ran).contains(part), "{part} is not in {}", words(&ran));
    }
    assert!(!words(&ran).contains("done in"), "{}", words(&ran));
    nothing_is_left(folder.path());
}

/// An image of this program, which is removed with its owner.
struct Image(String);

impl Image {
    fn of_this_program(folder: &Path) -> Image {
        let image = Image(format!("ccm-conformance.invalid/a-driver:{}", std::process::id()));
        let root = folder.join("root");
        std::fs::create_dir(&root).expect("a folder");
        std::fs::copy(PROGRAM, root.join("program")).expect("copied");
        let (root, name) = (root.display().to_string(), &image.0);
        let import = format!(
            r#"tar -C {root} -c program | docker import --change 'ENTRYPOINT ["/program"]' - {name}"#
        );
        let made = Command::new("sh").args(["-c", &import]).output().expect("there is a shell");
        assert!(made.status.success(), "{}", words(&made));
        std::fs::remove_dir_all(root).expect("removed");
        image
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["image", "rm", "--force", &self.0]).output();
    }
}

/// The arguments of a fake cloud that is the driver in a container.
const SERVES: [&str; 10] = [
    "fake-cloud",
    "serve",
    "--dialect",
    "native",
    "--listen",
    "127.0.0.1:0",
    "--driver-listen",
    "${DRIVER_LISTEN}",
    "--driver-token-file",
    "${DRIVER_TOKEN_FILE}",
];

/// Without Docker the run is refused, and the test checks that instead; `.ci/run` starts Docker first.
#[test]
fn a_driver_in_a_container_carries_a_run_and_goes_with_it() {
    let (folder, made) = made();
    let engine = Command::new("docker").arg("version").output();
    if !engine.is_ok_and(|version| version.status.success()) {
        driven_by(&made, "acme/driver:v1", &[]);
        let ran = run(folder.path());
        assert_eq!(ran.status.code(), Some(2), "{}", words(&ran));
        assert!(words(&ran).contains("no Docker engine"), "{}", words(&ran));
        return;
    }
    let image = Image::of_this_program(folder.path());
    let containers = || {
        let filter = format!("ancestor={}", image.0);
        let listed = Command::new("docker").args(["ps", "-aq", "--filter", &filter]).output();
        words(&listed.expect("docker is there"))
    };
    let checked = program(
        folder.path(),
        &[&["driver", "check", "--image", &image.0, "--arguments"][..], &SERVES].concat(),
    );
    assert_eq!(checked.status.code(), Some(0), "{}", words(&checked));
    assert_eq!(containers(), "");
    driven_by(&made, &image.0, &SERVES);
    let ran = run(folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", words(&ran));
    assert_eq!(passed_and_failed(&words(&ran)), (6, 0), "{}", words(&ran));
    assert_eq!(containers(), "");
    nothing_is_left(folder.path());
    for (argument, said) in [
        (
            "--no-such-flag",
            "ended with status 2 before it answered; its last lines:\nerror: unexpected argument",
        ),
        ("--version", "ended with status 0 before it answered; its last lines:\nccm-conformance "),
    ] {
        let other =
            program(folder.path(), &["driver", "check", "--image", &image.0, "--arguments", argument]);
        assert_eq!(other.status.code(), Some(3), "{}", words(&other));
        assert!(words(&other).contains(said), "{said} is not in {}", words(&other));
        assert_eq!(containers(), "");
    }
    let none = "ccm-conformance.invalid/none:v1";
    let missing = program(folder.path(), &["driver", "check", "--image", none]);
    assert_eq!(missing.status.code(), Some(3), "{}", words(&missing));
    assert!(words(&missing).contains(&format!("image {none} does not exist")), "{}", words(&missing));
}

#[test]
fn output_of_a_driver_cannot_control_a_terminal_or_a_workflow_runner() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = r#"printf '::stop-commands::x\n  ::add-mask::a\nx ##[group]y ##vso[task.complete]\n\033]0;title\007\342\200\256\n::set-output name=a::b\n' >&2; exit 1"#;
    let mut command = Command::new(PROGRAM);
    command.args(["driver", "check", "--command", "sh", "-c", hostile]);
    let command = command.current_dir(folder.path()).env("TMPDIR", folder.path());
    let ended = command.env("GITHUB_ACTIONS", "true").output().expect("it can be run");
    let said = words(&ended);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    // The text is shown, and no part of it is a workflow command.
    for shown in ["\n: :stop-commands::x\n", "\n  : :add-mask::a\n", "x # #[group]y # #vso[task.complete]"] {
        assert!(said.contains(shown), "{said}");
    }
    assert!(said.contains("\\u001b]0;title\\u0007\\u202e"), "{said}");
    let obeyed = said.lines().filter(|line| line.trim_start().starts_with("::") || line.contains("##["));
    assert_eq!(obeyed.count(), 0, "{said}");
    // Elsewhere it is shown unchanged, except for control sequences of terminals.
    let said = words(&command.env_remove("GITHUB_ACTIONS").output().expect("it can be run"));
    assert!(said.contains("\n::stop-commands::x\n") && !said.contains(['\u{1b}', '\u{202e}']), "{said}");
}
