//! Runs other programs.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes a line to standard error.
pub(crate) fn say(line: &str) {
    // A closed standard error is not a reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The workspace's folder. Cargo names this package's folder to the program that it runs; what it named when it compiled
/// this may be another checkout with the same target folder.
pub(crate) fn root() -> PathBuf {
    let named = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = named.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}

/// A program that runs in the workspace, with the environment of a user's shell. Cargo describes its package
/// to this program with variables that build scripts of libraries (ring's) watch: a second Cargo that
/// inherits them would build those libraries again, and everything that uses them.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_cargo_run) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether Cargo sets this variable for the program that it runs.
fn is_of_cargo_run(name: &str) -> bool {
    const PREFIXES: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE" | "OUT_DIR")
}

/// Runs a program in the workspace and shows its output.
pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    say(&format!("$ {program} {}", arguments.join(" ")));
    let status = command(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("starting {program}"))?;
    if status.success() { Ok(()) } else { bail!("{program} {} failed: {status}", arguments.join(" ")) }
}

/// Whether this program can be started with these arguments.
pub(crate) fn is_installed(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// The output of a program that runs in the workspace.
pub(crate) fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = command(program).args(arguments).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{program} {} failed ({}): {why}", arguments.join(" "), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))
}

/// A compiled test program.
pub(crate) struct TestProgram {
    /// The folder of its package.
    pub(crate) folder: PathBuf,
    /// The path of the program.
    pub(crate) path: String,
}

/// The test programs that `cargo test` builds for these arguments, built in the same way.
pub(crate) fn test_programs(of: &[&str]) -> Result<Vec<TestProgram>> {
    let arguments = [&["test", "--locked"], of, &["--no-run", "--message-format=json"]].concat();
    say(&format!("$ cargo {}", arguments.join(" ")));
    let program = |message: &Value| {
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let is_test = message["profile"]["test"].as_bool()?;
        let path = message["executable"].as_str().filter(|_| is_test)?.to_owned();
        Some(TestProgram { folder, path })
    };
    Ok(built(&arguments)?.iter().filter_map(program).collect())
}

/// A program of the workspace, built as `cargo test --workspace` builds it, so that nothing is compiled
/// twice: tests enable more features of some libraries (tokio's `test-util`), and a build of one package
/// alone would compile everything that uses these again.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    built_program(name, &["--workspace", "--test", "e2e"])
}

/// The program of the package `ccm-conformance`, built for release.
pub(crate) fn release_program(name: &str) -> Result<PathBuf> {
    built_program(name, &["--release", "--package", "ccm-conformance"])
}

fn built_program(name: &str, how: &[&str]) -> Result<PathBuf> {
    let arguments = [&["build", "--locked", "--bin", name, "--message-format=json"], how].concat();
    say(&format!("$ cargo {}", arguments.join(" ")));
    let is_it = |message: &&Value| {
        let target = &message["target"];
        target["name"] == name && target["kind"][0] == "bin" && message["executable"].is_string()
    };
    let messages = built(&arguments)?;
    let path = messages.iter().find(is_it).and_then(|message| message["executable"].as_str());
    Ok(PathBuf::from(path.with_context(|| format!("Cargo built no program '{name}'"))?))
}

/// The messages of Cargo during a build.
fn built(arguments: &[&str]) -> Result<Vec<Value>> {
    let output =
        command("cargo").args(arguments).stderr(Stdio::inherit()).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", arguments.join(" "), output.status);
    }
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_what_a_user_set_and_not_what_cargo_says_of_this_program() {
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_CRATE_NAME"] {
            assert!(is_of_cargo_run(name), "{name}");
        }
        for name in ["CARGO_TARGET_DIR", "CARGO_HOME", "CARGO_INCREMENTAL", "CARGO_TERM_COLOR", "PATH"] {
            assert!(!is_of_cargo_run(name), "{name}");
        }
    }
}
