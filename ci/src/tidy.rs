//! Rules of the project that no other tool knows. Each finding names file, line and the way out.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest source file, lines. Tables may grow longer and say so here.
const LONGEST: usize = 450;
/// Files that are tables or test tables rather than logic.
const TABLES: &[&str] = &["fake-cloud/src/admin/types.rs", "harness/embedded/semantics/src/kinds/table.rs"];
/// Modules of the harness in reading order: one imports only from those above it.
const LAYERS: &[&str] = &[
    "backends", "check", "ledger", "secrets", "probe", "config", "events", "images", "cluster", "cloud",
    "k8s", "ccm", "progress", "session", "proof", "cx", "evidence", "report", "run", "cli",
];

/// Checks everything.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    for path in tracked(root, ".rs")? {
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        length(&path, &text, &mut findings);
        opening(&path, &text, &mut findings);
        layers(&path, &text, &mut findings);
        waiting(&path, &text, &mut findings);
        providers(&path, &text, &mut findings);
    }
    if findings.is_empty() {
        return Ok(());
    }
    bail!("tidy found {}:\n  {}", findings.len(), findings.join("\n  "))
}

/// Files git knows, with this ending, relative to the root.
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

/// Every shell script, by its first line.
pub(crate) fn shell_scripts(root: &Path) -> Result<Vec<String>> {
    let is_shell = |path: &String| {
        let first = fs::read(root.join(path)).unwrap_or_default();
        let first = String::from_utf8_lossy(&first[..first.len().min(80)]).into_owned();
        path.ends_with(".sh") || first.starts_with("#!/bin/bash") || first.starts_with("#!/usr/bin/env bash")
    };
    Ok(tracked(root, "")?.into_iter().filter(is_shell).collect())
}

fn length(path: &str, text: &str, findings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LONGEST && !TABLES.contains(&path) && !is_test(path) {
        findings.push(format!("{path}: {lines} lines, more than {LONGEST}: split it by responsibility"));
    }
}

fn opening(path: &str, text: &str, findings: &mut Vec<String>) {
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: opens without saying what the file is for (//!)"));
    }
}

fn layers(path: &str, text: &str, findings: &mut Vec<String>) {
    let Some(rest) = path.strip_prefix("harness/src/") else { return };
    let module = rest.split(['/', '.']).next().unwrap_or_default();
    let Some(own) = LAYERS.iter().position(|layer| *layer == module) else {
        if module != "lib" {
            findings.push(format!("{path}: module {module} has no place in the layers (ci/src/tidy.rs)"));
        }
        return;
    };
    for (line, number) in text.lines().zip(1..) {
        for used in line.split("crate::").skip(1) {
            let name = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            // Documentation may point anywhere.
            let documentation = line.trim_start().starts_with("//");
            if LAYERS.iter().position(|layer| *layer == name).is_some_and(|at| at > own) && !documentation {
                findings.push(format!("{path}:{number}: {module} imports from {name}, which lies above it"));
            }
        }
    }
}

fn waiting(path: &str, text: &str, findings: &mut Vec<String>) {
    // A CCM is a program like any other: its back-off sleeps.
    if ["harness/src/probe/", "ci/", "fixtures/"].iter().any(|exempt| path.starts_with(exempt)) {
        return;
    }
    let mut allowed_until = 0;
    for (line, number) in text.lines().zip(1_usize..) {
        if line.contains("disallowed_methods") {
            allowed_until = number + 4;
        }
        let sleeps = line.contains("time::sleep(") || line.contains("thread::sleep(");
        if sleeps && number > allowed_until && !line.trim_start().starts_with("//") {
            findings.push(format!("{path}:{number}: sleeps; only the probe module lets time pass"));
        }
    }
}

fn providers(path: &str, text: &str, findings: &mut Vec<String>) {
    if !path.starts_with("suites/") {
        return;
    }
    for name in ["hcloud", "digitalocean", "openstack", "linode", "aws", "azure", "gcp"] {
        let named =
            |line: &str| line.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        if let Some((_, number)) = text.lines().zip(1..).find(|(line, _)| named(line)) {
            findings
                .push(format!("{path}:{number}: names the provider {name}; suites know capabilities only"));
        }
    }
}

fn is_test(path: &str) -> bool {
    PathBuf::from(path).components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}
