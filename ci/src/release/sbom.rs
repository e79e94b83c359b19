//! The bill of materials of the program in CycloneDX format, made by `cargo cyclonedx`.

use crate::process::{is_installed, root, run, said};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the files that the tool writes, next to each Cargo.toml of the workspace.
const DRAFT: &str = "release-bill-of-materials";

/// Checks that the tool exists, before minutes are spent on compiling.
///
/// # Errors
/// It is not installed.
pub(super) fn tool() -> Result<()> {
    ensure!(
        is_installed("cargo", &["cyclonedx", "--version"]),
        "cargo-cyclonedx is not installed, and a release has a bill of materials: \
         cargo install --locked cargo-cyclonedx@0.5.9"
    );
    Ok(())
}

/// Writes the bill of materials of the program for these targets.
///
/// # Errors
/// The tool fails, or lists nothing.
pub(super) fn write(file: &Path, targets: &[String]) -> Result<()> {
    // It accepts one target, or all. More than one is rare, and then the bill of all contains everything that
    // any of them needs.
    let target = match targets {
        [one] => one.as_str(),
        _ => "all",
    };
    let arguments = [
        "cyclonedx",
        "--format",
        "json",
        "--spec-version",
        "1.5",
        "--target",
        target,
        "--override-filename",
        DRAFT,
    ];
    let made = run("cargo", &arguments, &[]);
    let drafts = drafts()?;
    let bill = root().join("suites").join(format!("{DRAFT}.json"));
    let text = made.and_then(|()| fs::read_to_string(&bill).with_context(|| bill.display().to_string()));
    for draft in drafts.iter().filter(|draft| draft.exists()) {
        fs::remove_file(draft).with_context(|| format!("removing {}", draft.display()))?;
    }
    keep(&text?, file)
}

/// Copies a bill of materials that is already written.
///
/// # Errors
/// It cannot be read, or lists nothing.
pub(super) fn copy(bill: &Path, file: &Path) -> Result<()> {
    keep(&fs::read_to_string(bill).with_context(|| bill.display().to_string())?, file)
}

/// Writes a bill of materials that lists something.
fn keep(text: &str, file: &Path) -> Result<()> {
    let bill: Value = serde_json::from_str(text).context("reading the bill of materials")?;
    if bill["components"].as_array().is_none_or(Vec::is_empty) {
        bail!("the bill of materials names no component");
    }
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// The files that the tool has written.
fn drafts() -> Result<Vec<PathBuf>> {
    let metadata = said("cargo", &["metadata", "--no-deps", "--format-version=1", "--offline"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading what 'cargo metadata' says")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let folders = packages.filter_map(|one| Path::new(one["manifest_path"].as_str()?).parent());
    Ok(folders.map(|folder| folder.join(format!("{DRAFT}.json"))).collect())
}
