//! Every program that is shipped answers `--help` and `--version`: on standard output, with exit code 0. Mistakes are named as
//! they were typed.

#[path = "../src/programs.rs"]
mod programs;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ccm-conformance");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the program and returns its standard output; it must not do anything else.
fn answer(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new(PROGRAM).args(arguments).output().expect("the program can be run");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stderr.is_empty(), "{arguments:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

#[test]
fn every_program_of_its_own_answers() {
    for program in programs::PROGRAMS {
        let name = program.name;
        for help in ["--help", "-h"] {
            let help = answer(&[name, help]);
            assert!(help.contains("Usage: ") && help.contains(name), "{name}: {help}");
            assert!(help.contains("--version"), "{name}: {help}");
        }
        // A mutant may have the name of the program that it is based on.
        let version = answer(&[name, "--version"]);
        let own = version.strip_suffix(&format!(" {VERSION}\n"));
        assert!(own == Some(name) || own == name.strip_suffix("-mutant"), "{name}: {version}");
    }
}

/// The names below 'Commands:' in a help text.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

#[test]
fn every_command_answers() {
    let seen: BTreeSet<String> = all_commands().into_iter().map(|command| command.join(" ")).collect();
    for command in ["run", "bootstrap check", "fake-cloud serve", "reference-csi-driver node"] {
        assert!(seen.contains(command), "{command} is not among {seen:?}");
    }
    assert!(answer(&["--version"]).starts_with(&format!("ccm-conformance {VERSION} (")));
}

/// All commands, each with its words.
fn all_commands() -> Vec<Vec<String>> {
    let (mut open, mut found) = (vec![Vec::<String>::new()], Vec::new());
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = answer(&words);
        assert!(help.contains("Usage: "), "{words:?}: {help}");
        open.extend(
            commands(&help).into_iter().map(|name| [command.clone(), vec![name.to_owned()]].concat()),
        );
        found.push(command);
    }
    found
}

/// Runs the program in a window of that width and returns its standard output.
fn in_a_window(columns: &str, arguments: &[&str]) -> String {
    let mut program = Command::new(PROGRAM);
    let output = program.args(arguments).env("COLUMNS", columns).output().expect("the program can be run");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn help_is_wrapped_to_the_window() {
    let programs: Vec<&str> = programs::PROGRAMS.iter().map(|program| program.name).collect();
    for command in all_commands() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        for columns in ["80", "120", "400"] {
            let help = in_a_window(columns, &words);
            // Lines are at most 120 columns long on any terminal, as longer ones are hard to read.
            let is_program = command.first().is_some_and(|first| programs.contains(&first.as_str()));
            let longest = if is_program { usize::MAX } else { 120 };
            let most = columns.parse().map_or(0, |columns: usize| columns.min(longest));
            let long = help.lines().filter(|line| !line.starts_with("Usage: "));
            let long: Vec<&str> = long.filter(|line| line.chars().count() > most).collect();
            assert!(long.is_empty(), "{words:?} in {columns} columns:\n{}", long.join("\n"));
        }
    }
}

#[test]
fn manual_pages_do_not_depend_on_the_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = ["40", "200"].map(|columns| {
        let out = folder.path().join(columns);
        in_a_window(columns, &["man", "--out", out.to_str().expect("text")]);
        let files = std::fs::read_dir(&out).expect("a folder").map(|file| file.expect("a file").path());
        let read = |file: std::path::PathBuf| {
            let name = file.file_name().expect("a name").to_owned();
            (name, std::fs::read_to_string(&file).expect("text"))
        };
        files.map(read).collect::<BTreeSet<_>>()
    });
    assert!(pages[0].len() > 30 && pages[0] == pages[1], "{} pages", pages[0].len());
}

#[test]
fn mistakes_are_named_as_they_were_typed() {
    let inputs: [(&[&str], &str); 35] = [
        (
            &["run", "--only", "NODE-LIVE-01"],
            "error: --only: no check or suite matches 'NODE-LIVE-01'; did you",
        ),
        (&["run", "--suite", "foo"], "error: --suite: no suite matches 'foo'"),
        (&["run", "--profile", "./nope"], "error: --profile: there is no profile at ./nope; built in: "),
        (&["run", "--config", "nope.yaml"], "error: nope.yaml: cannot be read: there is no such file"),
        (&["run", "--failed-from", "nope"], "nope: there is no such file"),
        (&["run", "--topology", "nope"], "error: --topology: 'nope' is none of single, "),
        (&["run", "--cluster", "embedded", "--kubeconfig", "nope"], "only with '--cluster existing'"),
        (&["run", "--cluster", "kindd"], "[possible values: auto, kind, embedded, existing, none]"),
        (
            &["run", "--binary", "/nope", "--cluster", "embedded"],
            "error: --binary: /nope: there is no such file",
        ),
        (&["list", "--suite", "rutes"], "error: --suite: no suite matches 'rutes'; did you mean 'routes'?"),
        (
            &["list", "--only", "NODE-LIVE-01"],
            "error: --only: no check or suite matches 'NODE-LIVE-01'; did you",
        ),
        (&["compare", "nope", "nope"], "error: nope: there is no such file"),
        (&["merge", "nope", "nope"], "there is no such file"),
        (&["replay", "nope"], "there is no such file"),
        (&["verify", "nope"], "there is no such file"),
        (&["submission", "check", "nope"], "there is no such file"),
        (&["init", "--manifests", "nope"], "nope: there is no such file"),
        (&["image", "--out", "/nope/x"], "/nope/x: its folder does not exist"),
        (&["driver", "check", "/tmp"], "it is a path, not the URL of a driver; '--command' starts a program"),
        (&["docs", "drivr"], "error: unknown page 'drivr'; did you mean 'driver'?"),
        (&["explain", "M-XX-01"], "'ccm-conformance controls --list' shows all mutants"),
        (&["run", "--upgrade-from", "./old"], "did you mean 'profile:./old' or 'binary:./old'?"),
        (
            &["plan", "--cluster", "embedded", "--kubernetes", "1.99"],
            "error: --kubernetes 1.99: '1.99.0' is not a version from",
        ),
        (
            &["plan", "--cluster", "embedded", "--out", "/proc/x"],
            "error: output folder /proc/x: its folder does not exist",
        ),
        (&["man", "--out", "/dev/null/x"], "error: --out /dev/null/x: a part of the path is a file"),
        (&["controls", "--list", "--mutant", "M-NI-0"], "error: --mutant: unknown mutant 'M-NI-0'; did"),
        (&["bootstrap", "check", "nope"], "nope: MUST BOOT-READ: there is no such file"),
        (&["run", "--profile", ""], "error: the value of '--profile <NAME|PATH>' is empty"),
        (&["explain", ""], "error: the value of '<ID>...' is empty"),
        (
            &["proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"],
            "error: the cloud at http://127.0.0.1:1 cannot be reached: connection refused: no program listens \
             there; start the cloud first, or correct '--upstream'",
        ),
        (
            &["proxy", "--listen", "192.0.2.1:80", "--upstream", "http://127.0.0.1:1"],
            "error: the cloud at http://127.0.0.1:1 cannot be reached",
        ),
        (
            &["proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--journal", "/nope/x"],
            "error: --journal /nope/x: its folder does not exist",
        ),
        (
            &["driver", "check", "http://127.0.0.1:1", "--token-file", "nope"],
            "error: --token-file nope: there is no such file",
        ),
        (&["driver", "check", "--command", "/nope"], "there is no such program"),
        (&["export", "nope", "--format", "sarif"], "nope: there is no such file"),
    ];
    for (arguments, expected) in inputs {
        let output = Command::new(PROGRAM).args(arguments).env_remove("CCM_CONFORMANCE_CLUSTER").output();
        let Output { status, stdout, stderr } = output.expect("the program can be run");
        let said = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(!status.success() && said.contains(expected), "{arguments:?}: {status}\n{said}");
        assert!(!said.contains("os error"), "{arguments:?}: {said}");
    }
}

#[test]
fn plan_and_list_need_no_cluster() {
    let plan = answer(&["plan", "--cluster", "embedded", "--only", "NODE-INIT-01"]);
    for expected in
        ["\ncluster    embedded, topology single", " 1 cluster at the same time\n", " would run, in about "]
    {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
    let upgrade =
        answer(&["plan", "--cluster", "embedded", "--upgrade-from", "profile:mutants", "--suite", "upgrade"]);
    for expected in [
        "\nupgrade    from profile mutants\n",
        "\nskip  37 checks: suite routes was not asked for\n",
        "('--all' lists each",
    ] {
        assert!(upgrade.contains(expected), "{expected}: {upgrade}");
    }
    assert!(upgrade.lines().count() < 70, "{upgrade}");
    let list = answer(&["list", "--suite", "routes,taint-removal", "--level", "must", "--output", "json"]);
    let list: Vec<Value> = serde_json::from_str(&list).expect("JSON");
    let ids: Vec<&str> = list.iter().filter_map(|check| check["id"].as_str()).collect();
    assert!(ids.len() > 20 && ids.is_sorted(), "{ids:?}");
    assert!(list.iter().all(|check| check["level"] == "MUST" && check["suite"] != "operation"), "{list:?}");
    let node = answer(&["list", "--profile", "node"]);
    assert!(node.contains("NODE-INIT-01") && !node.contains("SVC-UPD-01"), "{node}");
    let shell = Command::new(PROGRAM)
        .args(["--", "ccm-conformance", "run", "--suite", "rou"])
        .env("COMPLETE", "fish")
        .output()
        .expect("the program can be run");
    let offered = String::from_utf8_lossy(&shell.stdout).into_owned();
    assert!(shell.status.success() && offered.starts_with("routes"), "{offered}");
}

#[test]
fn a_reaper_serves_only_the_run_that_has_started_it() {
    let mut shell = Command::new("sh");
    // Its child lives until the pipe is closed.
    shell.args(["-c", "exec 3<&0; cat <&3 & wait"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut shell = shell.spawn().expect("a shell");
    let output = Command::new(PROGRAM).args(["reap", &shell.id().to_string()]).stdin(Stdio::null()).output();
    let Output { status, stderr, .. } = output.expect("the program can be run");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("'reap' is started by a run"), "{said}");
    assert_eq!(shell.try_wait().expect("it can be waited for"), None, "its child was killed");
    drop(shell.stdin.take());
    assert!(shell.wait().expect("it ends").success());
}

/// The programs of the workspace, so that none comes to be without such a test: that of `fake-cloud` is in its own package,
/// that of `xtask` in `ci/tests`, as a package can run the programs of its own alone. `acme-conformance` is an example whose command
/// line is ours, and has its test in its own package.
#[test]
fn no_program_of_the_workspace_is_forgotten() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let output = cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).output().expect("cargo is there");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let programs =
        targets.filter(|target| target["kind"][0] == "bin").filter_map(|target| target["name"].as_str());
    assert_eq!(
        BTreeSet::from_iter(programs),
        BTreeSet::from(["acme-conformance", "ccm-conformance", "fake-cloud", "xtask"])
    );
}
