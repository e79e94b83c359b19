//! The options of `explore`.

use super::ccm::CcmOptions;
use super::complete::{mutants, variants};
use super::run::shard;
use super::values::{ANY, whole, words};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use harness_config::{BackendChoice, ClusterKeys, HumanDuration, OutputKeys, RunFile};
use harness_core::ledger::Share;
use harness_explore::PATTERNS;
use std::path::PathBuf;
use std::str::FromStr;

/// Headings of the options' help.
const CLUSTER: &str = "Cluster";
const WHICH: &str = "What is tried";
const RESULT: &str = "Result";
const PROOF: &str = "Proof of the exploration";

#[derive(Clone, Debug, Args)]
pub(crate) struct ExploreOptions {
    #[command(flatten)]
    ccm: CcmOptions,
    /// Kind of cluster; on kind, requests to the API server are not disturbed [default: embedded]
    #[arg(long, value_name = "KIND", value_parser = words::<BackendChoice>(&["embedded", "kind"]), help_heading = CLUSTER)]
    cluster: Option<BackendChoice>,
    /// Kubernetes version, or the name of a node image [default: the newest available]
    #[arg(long, value_name = "VERSION|IMAGE", help_heading = CLUSTER)]
    kubernetes: Option<String>,
    /// Only these scenarios, separated by commas [default: all; see --list]
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = WHICH)]
    pub(crate) scenario: Vec<String>,
    /// Only these patterns, separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(PATTERNS.iter().map(|pattern| pattern.name())), help_heading = WHICH)]
    pub(crate) pattern: Vec<String>,
    /// Carry out what this file of a finding says, three times, instead of exploring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "pattern", "list"], help_heading = WHICH)]
    pub(crate) replay: Option<PathBuf>,
    /// List the scenarios and patterns, and try nothing
    #[arg(long, help_heading = WHICH)]
    pub(crate) list: bool,
    /// Time for the trials; those that are in progress then are ended without a result
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, default_value = "5m", value_parser = HumanDuration::from_str, help_heading = WHICH)]
    pub(crate) budget: HumanDuration,
    /// Number that chooses the order of the trials, the pairs and the random histories
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, default_value_t = 1, value_parser = whole::<u64>(0, ANY), help_heading = WHICH)]
    pub(crate) seed: u64,
    /// Number of random histories, next to the scenarios
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 4, value_parser = whole::<u16>(0, 10_000), help_heading = WHICH)]
    pub(crate) random: u16,
    /// At most this many pairs of faults, after all single ones [default: as many as the budget allows]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(0, 1_000_000), help_heading = WHICH)]
    pub(crate) pairs: Option<u32>,
    /// Only the K-th of N parts of all trials; 'merge' joins the parts. 'job/N' in a Pod of an Indexed Job
    #[arg(long, value_name = "K/N", value_parser = shard, help_heading = WHICH)]
    pub(crate) shard: Option<Share>,
    /// Number of clusters at the same time [default: 1 with kind, 12 embedded]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u8>(1, 32), help_heading = WHICH)]
    pub(crate) jobs: Option<u8>,
    /// End after this many findings
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 20, value_parser = whole::<u16>(1, 1000), help_heading = WHICH)]
    pub(crate) max_findings: u16,
    /// Exit with 1 if anything is found; a known finding that is seen again always does
    #[arg(long, help_heading = RESULT)]
    pub(crate) require_clean: bool,
    /// Explore this mutant of the reference CCM: its bug should be found
    #[arg(long, value_name = "ID", conflicts_with_all = ["profile", "image", "binary", "variant"], help_heading = PROOF, add = ArgValueCandidates::new(mutants))]
    pub(crate) mutant: Option<String>,
    /// Explore this conforming variant, a correct but unusual CCM: nothing should be found
    #[arg(long, value_name = "ID", conflicts_with_all = ["profile", "image", "binary"], help_heading = PROOF, add = ArgValueCandidates::new(variants))]
    pub(crate) variant: Option<String>,
    /// Folder for explore.html, explore.json, explore-junit.xml and a file for each finding
    #[arg(long, value_name = "DIR", default_value = "conformance-results/explore", help_heading = RESULT, value_hint = ValueHint::DirPath)]
    out: String,
}

impl ExploreOptions {
    /// What was typed, in the run file's form.
    pub(crate) fn overrides(&self) -> RunFile {
        RunFile {
            profile: self.ccm.profile.clone(),
            image: self.ccm.image.clone(),
            binary: self.ccm.binary.clone(),
            cluster: ClusterKeys {
                backend: Some(self.cluster.unwrap_or(BackendChoice::Embedded)),
                kubernetes: self.kubernetes.clone(),
                ..ClusterKeys::default()
            },
            output: OutputKeys { dir: Some(self.out.clone()) },
            ..RunFile::default()
        }
    }
}
