//! Every shipped program answers `--help` and `--version` on standard output, with exit code 0.

#[path = "../src/programs.rs"]
mod programs;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

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
    let mut open = vec![Vec::<String>::new()];
    let mut seen = BTreeSet::new();
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let help = answer(&words);
        assert!(help.contains("Usage: "), "{words:?}: {help}");
        for name in commands(&help) {
            open.push([command.clone(), vec![name.to_owned()]].concat());
        }
        seen.insert(command.join(" "));
    }
    for command in ["run", "bootstrap check", "fake-cloud serve", "reference-csi-driver node"] {
        assert!(seen.contains(command), "{command} is not among {seen:?}");
    }
    assert!(answer(&["--version"]).starts_with(&format!("ccm-conformance {VERSION} (")));
}

/// The programs of the workspace, so that none is missing here. `fake-cloud` is tested in its own package and
/// `xtask` in `ci/tests`, as a package can run only its own programs. `acme-conformance` is an example that
/// uses our command line, and is tested in its own package.
#[test]
fn no_program_of_the_workspace_is_forgotten() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    let told = cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).output().expect("cargo is there");
    let metadata: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let programs =
        targets.filter(|target| target["kind"][0] == "bin").filter_map(|target| target["name"].as_str());
    assert_eq!(
        BTreeSet::from_iter(programs),
        BTreeSet::from(["acme-conformance", "ccm-conformance", "fake-cloud", "xtask"])
    );
}
