//! Programs that xtask runs, and where.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

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
