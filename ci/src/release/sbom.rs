//! The bill of materials of the program, in CycloneDX's form, by `cargo cyclonedx`.

use crate::process::{is_installed, root, run, said};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What the tool is told to call its files, which it puts beside each Cargo.toml of the workspace.
const DRAFT: &str = "release-bill-of-materials";

/// Looks for the tool, before minutes are spent on compiling.
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

/// Writes the bill of what the program is made of, for these targets.
///
/// # Errors
/// The tool fails, or lists nothing.
pub(super) fn write(file: &Path, targets: &[String]) -> Result<()> {
    // It takes one target, or all; more than one is rare, and what is needed by any of them is on the bill of all.
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
    let text = text?;
    let bill: Value = serde_json::from_str(&text).context("reading the bill of materials")?;
    if bill["components"].as_array().is_none_or(Vec::is_empty) {
        bail!("the bill of materials names no component");
    }
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Where the tool puts its files.
fn drafts() -> Result<Vec<PathBuf>> {
    let metadata = said("cargo", &["metadata", "--no-deps", "--format-version=1", "--offline"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading what 'cargo metadata' says")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let folders = packages.filter_map(|one| Path::new(one["manifest_path"].as_str()?).parent());
    Ok(folders.map(|folder| folder.join(format!("{DRAFT}.json"))).collect())
}
