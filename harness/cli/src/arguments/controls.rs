//! The options of `controls`.

use super::complete::{adversaries, mutants, variants};
use super::values::{whole, words};
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use harness_config::{BackendChoice, ClusterKeys, Keep, OutputKeys, RunFile};
use harness_core::ledger::Share;
use std::str::FromStr;

/// Headings of the options' help.
const WHICH: &str = "What is judged";
const CLUSTER: &str = "Cluster";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ControlOptions {
    /// Only these mutants, separated by commas; 'all' also includes no CCM at all [default: everything, if
    /// --variant and --adversary are absent too]
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(mutants))]
    pub(crate) mutant: Vec<String>,
    /// Only these conforming variants (correct but unusual CCMs), separated by commas, or 'all'
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(variants))]
    pub(crate) variant: Vec<String>,
    /// Only these adversaries (hostile CCMs), separated by commas, or 'all'
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(adversaries))]
    pub(crate) adversary: Vec<String>,
    /// List all mutants, conforming variants and adversaries, or those of the other options, and judge nothing
    #[arg(long, help_heading = WHICH)]
    pub(crate) list: bool,
    /// Only part K of N of what the other options select, to share the work among machines or to take a sample
    #[arg(long, value_name = "K/N", value_parser = Share::from_str, help_heading = WHICH)]
    pub(crate) share: Option<Share>,
    /// Kind of cluster [default: auto] [env: CCM_CONFORMANCE_CLUSTER]
    #[arg(long, value_name = "KIND", value_parser = words::<BackendChoice>(&["auto", "kind", "embedded", "existing"]), help_heading = CLUSTER)]
    pub(crate) cluster: Option<BackendChoice>,
    /// Kubernetes version, or the name of a node image [default: the newest available]
    #[arg(long, value_name = "VERSION|IMAGE", help_heading = CLUSTER)]
    pub(crate) kubernetes: Option<String>,
    /// Number of clusters at the same time [default: 1 with kind, 16 embedded]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(1, 64), help_heading = CLUSTER)]
    pub(crate) side_by_side: Option<usize>,
    /// Folder for evidence, with a subfolder for each CCM
    #[arg(long, value_name = "DIR", default_value = "conformance-results/controls", value_hint = ValueHint::DirPath)]
    pub(crate) out: String,
    /// Whether to keep the cluster after the run [default: never]
    #[arg(long, value_name = "WHEN", value_parser = words::<Keep>(Keep::WORDS))]
    pub(crate) keep: Option<Keep>,
}

impl ControlOptions {
    /// What was typed, in the run file's form.
    pub(crate) fn overrides(&self) -> RunFile {
        RunFile {
            cluster: ClusterKeys {
                backend: self.cluster,
                kubernetes: self.kubernetes.clone(),
                ..ClusterKeys::default()
            },
            output: OutputKeys { dir: Some(self.out.clone()) },
            keep: self.keep,
            ..RunFile::default()
        }
    }
}
