//! Programs that xtask runs, and where.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes a line to standard error.
pub(crate) fn say(line: &str) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Runs a program in the workspace and shows what it says.
pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    say(&format!("$ {program} {}", arguments.join(" ")));
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("starting {program}"))?;
    if status.success() { Ok(()) } else { bail!("{program} {} failed: {status}", arguments.join(" ")) }
}

/// Whether this program can be started with these arguments.
pub(crate) fn is_installed(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// What a program prints that runs in the workspace.
pub(crate) fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
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
    /// Where it is.
    pub(crate) path: String,
}

/// The test programs that `cargo test` builds for these arguments, built as it builds them.
pub(crate) fn test_programs(of: &[&str]) -> Result<Vec<TestProgram>> {
    let arguments = [&["test", "--locked"], of, &["--no-run", "--message-format=json"]].concat();
    say(&format!("$ cargo {}", arguments.join(" ")));
    let output = Command::new("cargo")
        .args(arguments)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile: {}", output.status);
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let program = |line: &[u8]| {
        let message: Value = serde_json::from_slice(line).ok()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let is_test = message["profile"]["test"].as_bool()?;
        let path = message["executable"].as_str().filter(|_| is_test)?.to_owned();
        Some(TestProgram { folder, path })
    };
    Ok(messages.filter_map(program).collect())
}
