//! Rules of the project that no other tool knows. Each finding names file, line and remedy.

mod architecture;
mod circles;
pub(crate) mod documents;
mod lines;
pub(crate) mod markdown;
mod modules;
mod prelude;
mod prose;
mod resolve;
mod workflows;

use anyhow::{Context, Result, bail};
use documents::Documents;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks everything; `accepts` returns the faults in arguments of `cargo xtask`.
pub(crate) fn check(root: &Path, accepts: impl Fn(&[&str]) -> Result<(), String>) -> Result<()> {
    let mut findings = Vec::new();
    let texts = texts(root, ".md")?;
    documents::length(&texts, &mut findings);
    prose::check(&texts, &mut findings);
    let files = tracked(root, "")?;
    let documents = Documents::read(&texts, &files);
    documents.check(accepts, &mut findings);
    workflows::check(root, &files, &mut findings)?;
    let sources = self::texts(root, ".rs")?;
    prelude::check(&sources, &mut findings);
    for (path, text) in sources {
        lines::check(&path, &text, &mut findings);
        prose::check_code(&path, &text, &mut findings);
        // The texts in `ci/` are examples.
        if !path.starts_with("ci/") {
            documents.named(&path, &text, &mut findings);
        }
    }
    let mut rings = Vec::new();
    let metadata = metadata(root)?;
    architecture::check(root, &metadata, &mut findings)?;
    for crate_root in roots(&metadata) {
        rings.extend(circles::rings(&resolve::uses(&modules::read(root, &crate_root)?)));
    }
    circles::check(rings, &mut findings);
    if findings.is_empty() {
        return Ok(());
    }
    bail!("tidy found {}:\n  {}", findings.len(), findings.join("\n  "))
}

/// The files with this ending that git knows, by path.
pub(crate) fn texts(root: &Path, ending: &str) -> Result<BTreeMap<String, String>> {
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        Ok((path, text))
    };
    tracked(root, ending)?.into_iter().map(read).collect()
}

/// The paths of the files with this ending that git knows, relative to the root.
fn tracked(root: &Path, ending: &str) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("starting git")?;
    let text = String::from_utf8(listed.stdout).context("file names that are not UTF-8")?;
    let exists = |path: &&str| root.join(path).is_file();
    Ok(text.lines().filter(|path| path.ends_with(ending)).filter(exists).map(str::to_owned).collect())
}

/// All shell scripts, recognised by their first line.
pub(crate) fn shell_scripts(root: &Path) -> Result<Vec<String>> {
    let is_shell = |path: &String| {
        let first = fs::read(root.join(path)).unwrap_or_default();
        let first = String::from_utf8_lossy(&first[..first.len().min(80)]).into_owned();
        path.ends_with(".sh") || first.starts_with("#!/bin/bash") || first.starts_with("#!/usr/bin/env bash")
    };
    Ok(tracked(root, "")?.into_iter().filter(is_shell).collect())
}

/// The output of `cargo metadata` for the workspace.
fn metadata(workspace: &Path) -> Result<serde_json::Value> {
    let listed = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(workspace)
        .output()
        .context("starting cargo")?;
    serde_json::from_slice(&listed.stdout).context("reading what 'cargo metadata' says")
}

/// The root files of all targets of the workspace.
fn roots(metadata: &serde_json::Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.filter_map(|target| target["src_path"].as_str()).map(PathBuf::from).collect()
}
