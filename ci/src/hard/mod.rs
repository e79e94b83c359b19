//! `cargo xtask hard`: measures what the harness and its machine have to withstand: kills at any moment,
//! malformed inputs, forged reports, secrets that a CCM prints, clouds that fail, hostile CCMs, unauthorised
//! access.

mod adversaries;
mod disturbance;
mod environment;
mod forgeries;
mod inputs;
mod kills;
mod leaks;
mod listeners;
mod memory;
mod slow_docker;
mod taken_port;
mod tests;
mod watched;

use crate::process;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::path::PathBuf;

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Malformed inputs
    Inputs,
    /// Submitted reports, forged line by line
    Forgeries,
    /// Secrets that a CCM prints
    Secrets,
    /// Access without a token, with that of others, with an expired one; privilege escalation; odd requests
    Access,
    /// Every fault of the fake cloud in every operation
    Faults,
    /// Hostile CCMs
    Adversaries,
    /// Signals at any moment of a run
    Kills,
    /// A frozen API server, a restarting etcd, a slow Docker, a taken port, a killed machine: a full run for
    /// each, unless '--checks' says otherwise
    Environment,
    /// Output without an end, and output that is never read
    Memory,
}

/// How many forgeries '--all' measures, of some 47,000; a seed chooses them.
const FORGERIES: usize = 5000;

/// The selected measurements, and their extent.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The program [default: a release build]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Use the program as `cargo test` builds it
    #[arg(long, conflicts_with = "program")]
    dev: bool,
    /// Number of runs that are ended by a signal, at different moments
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 60)]
    kills: u32,
    /// Kind of cluster for runs that are ended by a signal, or whose environment is disturbed
    #[arg(long, value_name = "KIND", default_value = "embedded")]
    cluster: kills::On,
    /// Only these disturbances of the environment
    #[arg(long, value_name = "DISTURBANCE", value_delimiter = ',')]
    disturbances: Vec<disturbance::Disturbance>,
    /// Only these checks, by id or pattern with *, in runs whose environment is disturbed
    #[arg(long, value_name = "ID")]
    checks: Option<String>,
    /// Only every Nth of the malformed inputs
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    every: usize,
    /// Number of forged reports; about ten seconds
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 200)]
    forgeries: usize,
    /// Seed for moments, forgeries, faults and adversaries
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    seed: u64,
    /// Number of measured combinations of fault and operation; about a minute
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 32)]
    cells: usize,
    /// Number of measured hostile CCMs; about a minute
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 4)]
    adversaries: usize,
    /// All combinations, all hostile CCMs, and 5,000 forgeries
    #[arg(long)]
    all: bool,
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
}

/// Makes the measurements and prints the figures.
///
/// # Errors
/// A figure exceeds its limit; each of these was printed.
pub(crate) fn measure(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => std::fs::canonicalize(program).with_context(|| program.display().to_string())?,
        None if options.dev => process::program("ccm-conformance")?,
        None => process::release_program("ccm-conformance")?,
    };
    let mut wrong = Vec::new();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        wrong.extend(match part {
            Part::Inputs => inputs::measure(&program, options.every)?,
            Part::Forgeries => {
                let count = if options.all { FORGERIES } else { options.forgeries };
                forgeries::measure(&program, count, options.seed)?
            }
            Part::Secrets => leaks::measure(&program)?,
            Part::Access => [listeners::measure(&program)?, tests::access()?].concat(),
            Part::Faults => tests::faults((!options.all).then_some(options.cells), options.seed)?,
            Part::Adversaries => {
                let count = (!options.all).then_some(options.adversaries);
                adversaries::measure(&program, count, options.seed)?
            }
            Part::Kills => kills::measure(&program, options.cluster, options.kills, options.seed)?,
            Part::Environment => {
                let (disturbances, checks) = (&options.disturbances, options.checks.as_deref());
                environment::measure(&program, options.cluster, disturbances, checks)?
            }
            Part::Memory => [memory::measure(&program)?, tests::unread()?].concat(),
        });
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{} not as promised:\n  {}", wrong.len(), wrong.join("\n  "))
}
