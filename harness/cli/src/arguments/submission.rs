//! What was typed after `submission`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum SubmissionCommand {
    /// Put a report and its packed events where submitted reports lie, with a file that says whose they are.
    Pack(PackOptions),
    /// Are submitted reports what they say, by the rules? Exit code 1 where one is not.
    Check {
        /// Folders of submissions, or of folders of them.
        #[arg(value_name = "FOLDER", required = true)]
        folders: Vec<PathBuf>,
    },
    /// Print the table of submitted reports.
    List {
        /// Where they lie.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Put the table into this document instead, between its two marks; exit code 1 where it was another.
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// Write a static web site: a matrix of all submitted reports, a page and a badge for each
    Site {
        /// Folder with the submitted reports
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Folder for the site, which must not exist
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PackOptions {
    /// The report.yaml of a run, with events.jsonl beside it.
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
    /// Who makes the CCM: lower-case letters, digits and hyphens.
    #[arg(long, value_name = "NAME")]
    pub(crate) vendor: String,
    /// What the CCM is called.
    #[arg(long, value_name = "NAME")]
    pub(crate) product: String,
    /// The CCM's version.
    #[arg(long, value_name = "VERSION")]
    pub(crate) product_version: String,
    /// Where the CCM is to be had, https://...
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The report is this project's of somebody else's CCM.
    #[arg(long)]
    pub(crate) by_project: bool,
    /// Where submitted reports lie; the submission becomes MINOR/VENDOR in it.
    #[arg(long, value_name = "FOLDER", default_value = "docs/reports")]
    pub(crate) to: PathBuf,
}
