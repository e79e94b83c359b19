//! Rules for continuous integration: the required parts of GitHub's workflows, the Action and Dependabot's
//! configuration. They make sure that results can be repeated and that nothing is published that a test
//! rejects.

mod dependabot;
mod jobs;
mod pins;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use dependabot::DEPENDABOT;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The folder of workflows.
const WORKFLOWS: &str = ".github/workflows/";
/// Cargo's configuration, which contains the alias `xtask`.
const CARGO: &str = ".cargo/config.toml";

/// Checks the repository's files.
///
/// # Errors
/// A file cannot be read, or is not YAML.
pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) -> Result<()> {
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"));
    let is_yaml = |path: &&String| path.ends_with(".yml") || path.ends_with(".yaml");
    let is_ci = |path: &&String| path.starts_with(".github/") || path.as_str() == "action.yml";
    let mut texts = BTreeMap::new();
    for path in tracked.iter().filter(is_yaml).filter(is_ci) {
        texts.insert(path.clone(), read(path)?);
    }
    for (path, text) in &texts {
        let document: Value = serde_saphyr::from_str(text).with_context(|| path.clone())?;
        if path.starts_with(WORKFLOWS) {
            jobs::check(path, text, &document, findings);
        }
        if path == DEPENDABOT {
            dependabot::check(&document, tracked, findings);
        }
    }
    if !texts.contains_key(DEPENDABOT) {
        findings.push(format!("{DEPENDABOT} is missing: newer versions of dependencies are not reported"));
    }
    pins::actions(&texts, findings);
    pins::alias(&read(CARGO)?, findings);
    let names_tools = |path: &&String| {
        texts.contains_key(*path)
            || path.ends_with(".md")
            || path.ends_with(".rs")
            || path.as_str() == ".ci/run"
    };
    // The tests of the rules contain examples of rejected files.
    let is_example = |path: &&String| path.starts_with("ci/src/tidy/workflows/");
    let mut named = BTreeMap::new();
    for path in tracked.iter().filter(names_tools).filter(|path| !is_example(path)) {
        named.insert(path.clone(), read(path)?);
    }
    pins::tools(&named, findings);
    Ok(())
}
