//! The arguments of `init`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const CLOUD_EXAMPLES: &str = "\
Example:
  ccm-conformance init cloud acme             # writes ./acme";

/// Where the manifests are, and what they do not say.
#[derive(Clone, Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group(clap::ArgGroup::new("from").required(true).multiple(true).args(["manifests", "helm", "kustomize"])))]
pub struct InitOptions {
    /// What to write, if not a profile.
    #[command(subcommand)]
    pub what: Option<InitCommand>,
    /// Manifest file or folder, or '-' for standard input; may be repeated
    #[arg(long, value_name = "DIR|FILE|-")]
    pub manifests: Vec<PathBuf>,
    /// Helm chart, rendered with helm
    #[arg(long, value_name = "CHART")]
    pub helm: Option<PathBuf>,
    /// Values file for the chart; may be repeated
    #[arg(long, value_name = "FILE", requires = "helm")]
    pub values: Vec<PathBuf>,
    /// Folder with a kustomization, built with kubectl
    #[arg(long, value_name = "DIR")]
    pub kustomize: Option<PathBuf>,
    /// Workload of the CCM, if several look like one
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub workload: Option<String>,
    /// Container of the CCM in that workload [default: the one that looks most like a CCM]
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub container: Option<String>,
    /// Name of the CCM in reports [default: that of its provider]
    #[arg(long)]
    pub name: Option<String>,
    /// Folder to write, which must not exist [default: the name of the CCM]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What else `init` writes.
#[derive(Clone, Debug, Subcommand)]
pub enum InitCommand {
    /// Write a driver to start from: a small simulator that passes `driver check`, and a profile that uses it
    #[command(after_help = CLOUD_EXAMPLES)]
    Cloud(InitCloudOptions),
}

/// The programming language of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Python 3.10 or later with only its standard library
    Python,
    /// Rust: a separate project, with axum, tokio and serde_json
    Rust,
}

/// The cloud for which a driver is written.
#[derive(Clone, Debug, Args)]
pub struct InitCloudOptions {
    /// Name of the cloud and of the folder
    pub name: String,
    /// Programming language of the driver
    #[arg(long, value_enum, default_value = "python")]
    pub driver: Language,
    /// Folder to write, which must not exist [default: the name of the cloud]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
