//! The arguments of commands that work on reports of earlier runs.

use super::values::ListOutput;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Failed checks for code scanning (SARIF 2.1.0)
    Sarif,
    /// The run as an OpenTelemetry trace (OTLP in JSON)
    Otlp,
    /// A folder in the layout that Prow and TestGrid read
    Prow,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The report.yaml of a run
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
    /// Format to write
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// File to write, or the folder for prow, which must not exist [default: standard output]
    #[arg(long, value_name = "PATH", required_if_eq("format", "prow"))]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrendOptions {
    /// Reports of one CCM, or the folders that contain their report.yaml, in any order
    #[arg(value_name = "REPORT|DIR", required = true)]
    pub(crate) reports: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
pub(crate) struct BisectOptions {
    /// Commit at which the check passes
    #[arg(long, value_name = "REF")]
    pub(crate) good: String,
    /// Commit at which the check fails
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    pub(crate) bad: String,
    /// Shell command that builds the CCM in a checkout of a commit
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: String,
    /// Program that the build writes, relative to the checkout
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: PathBuf,
    /// The check that decides
    #[arg(long, value_name = "ID")]
    pub(crate) check: String,
    /// Repository of the CCM
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: PathBuf,
    /// Further options of 'run', after '--'; paths in them are relative to the current folder
    #[arg(last = true, value_name = "OPTION")]
    pub(crate) run: Vec<String>,
}
