//! `cargo xtask hard`: what a machine that runs the harness has to bear, in figures: kills at any moment, malformed inputs,
//! secrets that a CCM prints.

mod inputs;
mod kills;
mod leaks;

use crate::process::{root, run, say};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// What is measured, and how much of it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The program; without it one is built for release.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Runs that are ended by a signal, at moments that differ.
    #[arg(long, value_name = "N", default_value_t = 60)]
    kills: u32,
    /// Only every Nth of the malformed inputs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Seed of the moments.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Measures everything and prints the figures.
///
/// # Errors
/// A figure is not as promised; each that is not was printed.
pub(crate) fn measure(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => std::fs::canonicalize(program).with_context(|| program.display().to_string())?,
        None => {
            run(
                "cargo",
                &["build", "--locked", "--release", "--package", "suites", "--bin", "ccm-conformance"],
                &[],
            )?;
            let target =
                std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
            built_in(&target)?
        }
    };
    let mut wrong = Vec::new();
    wrong.extend(inputs::measure(&program, options.every)?);
    wrong.extend(leaks::measure(&program)?);
    wrong.extend(kills::measure(&program, options.kills, options.seed)?);
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{} not as promised:\n  {}", wrong.len(), wrong.join("\n  "))
}

/// The release program below a target folder, whatever the triple.
fn built_in(target: &std::path::Path) -> Result<PathBuf> {
    for entry in std::fs::read_dir(target)? {
        let program = entry?.path().join("release/ccm-conformance");
        if program.is_file() {
            return Ok(program);
        }
    }
    say("there is no program below the target folder");
    bail!("{} holds no release/ccm-conformance", target.display())
}
