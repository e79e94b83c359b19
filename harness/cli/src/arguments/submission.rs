//! The arguments of `submission`.

use super::examples::{PACK_EXAMPLES, SITE_EXAMPLES, SUBMISSION_CHECK_EXAMPLES, SUBMISSION_LIST_EXAMPLES};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum SubmissionCommand {
    /// Put a report and its compressed events into the folder of submitted reports, with a file about the product
    #[command(after_help = PACK_EXAMPLES)]
    Pack(PackOptions),
    /// Check submitted reports against the rules (exit code 1 if one breaks them)
    #[command(after_help = SUBMISSION_CHECK_EXAMPLES)]
    Check {
        /// Folders of submissions, or folders that contain such folders
        #[arg(value_name = "FOLDER", required = true)]
        folders: Vec<PathBuf>,
    },
    /// Print the table of submitted reports
    #[command(after_help = SUBMISSION_LIST_EXAMPLES)]
    List {
        /// Folder with the submissions
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Put the table into this document instead, between its two marks (exit code 1 if it was different)
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// Write a static web site: a matrix of all submitted reports, a page and a badge for each
    #[command(after_help = SITE_EXAMPLES)]
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
    /// The report.yaml of a run, with events.jsonl next to it
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
    /// Vendor of the CCM: lower-case letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    pub(crate) vendor: String,
    /// Name of the CCM
    #[arg(long, value_name = "NAME")]
    pub(crate) product: String,
    /// Version of the CCM
    #[arg(long, value_name = "VERSION")]
    pub(crate) product_version: String,
    /// Where to get the CCM, https://...
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The report was made by this project, about a CCM of others
    #[arg(long)]
    pub(crate) by_project: bool,
    /// Folder for submitted reports; the submission becomes MINOR/VENDOR in it
    #[arg(long, value_name = "FOLDER", default_value = "docs/reports")]
    pub(crate) to: PathBuf,
}
