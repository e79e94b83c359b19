//! The project's web site: the book, and below `results/` all submitted reports.

use crate::book;
use crate::process::{program, root, run, say};
use anyhow::{Context, Result};
use std::fs;

/// Where submitted reports are.
const REPORTS: &str = "docs/reports";

/// Builds the site into `target/site`.
pub(crate) fn build(options: &book::Options) -> Result<()> {
    let site = root().join("target/site");
    // What an earlier build left may no longer be part of the site.
    if site.exists() {
        fs::remove_dir_all(&site).with_context(|| format!("removing {}", site.display()))?;
    }
    book::build_into(options, &site)?;
    let program = program("ccm-conformance")?.display().to_string();
    let (reports, results) = (root().join(REPORTS).display().to_string(), site.join("results"));
    run(&program, &["submission", "site", &reports, "--out", &results.display().to_string()], &[])?;
    say(&format!("{}", site.join("index.html").display()));
    Ok(())
}
