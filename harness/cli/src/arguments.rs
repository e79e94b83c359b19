//! The arguments of every command.

mod ccm;
mod complete;
mod controls;
mod driver;
mod examples;
mod explore;
mod proxy;
mod reports;
mod results;
mod run;
mod submission;
mod values;

pub(super) use complete::know;
pub(super) use controls::ControlOptions;
pub(super) use driver::{DriverCommand, DriverOptions};
pub(super) use explore::ExploreOptions;
pub(super) use proxy::ProxyOptions;
pub(super) use reports::{AttestOptions, CompareOptions, MergeOptions, ReplayOptions, VerifyOptions};
pub(super) use results::{BisectOptions, ExportFormat, ExportOptions, TrendOptions};
pub(super) use run::{DevOptions, PlanOptions, RepetitionOptions, RunOptions, SharedOptions};
pub(super) use submission::{PackOptions, SubmissionCommand};
pub(super) use values::{Color, ListOutput, ListedLevel};

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use embedded_cluster::KubernetesVersion;
use examples::{
    ATTEST_EXAMPLES, BISECT_EXAMPLES, CLEAN_EXAMPLES, CLUSTER_EXAMPLES, COMPARE_EXAMPLES,
    COMPLETIONS_EXAMPLES, CONTROLS_EXAMPLES, COVERAGE_EXAMPLES, DEV_EXAMPLES, DOCS_EXAMPLES, DOCTOR_EXAMPLES,
    EXIT_CODES, EXPLAIN_EXAMPLES, EXPLORE_EXAMPLES, EXPORT_EXAMPLES, IMAGE_EXAMPLES, INIT_EXAMPLES,
    LIST_EXAMPLES, MAN_EXAMPLES, MERGE_EXAMPLES, PLAN_EXAMPLES, REPLAY_EXAMPLES, RUN_EXAMPLES,
    SCHEMA_EXAMPLES, TREND_EXAMPLES, VERIFY_EXAMPLES,
};
use harness_config::BackendKind;
use std::path::PathBuf;
use values::{ANY, whole, words};

/// The longest lines of help, in columns: longer ones are hard to read.
const WIDEST: usize = 120;

/// Conformance tests for Kubernetes cloud controller managers
#[derive(Debug, Parser)]
#[command(name = "ccm-conformance", version, max_term_width = WIDEST, after_help = EXIT_CODES)]
pub(super) struct Cli {
    /// Whether output has colours; NO_COLOR and CLICOLOR_FORCE count if it is 'auto'
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Test a CCM: create a cluster and a fake cloud, run the checks, write a report, clean up
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunOptions),
    /// Judge a CCM again whenever its program, profile or sources change, on the embedded cluster
    #[command(after_help = DEV_EXAMPLES, mut_arg("cluster", only_embedded), mut_arg("kubeconfig", refused), mut_arg("allow_foreign_cluster", refused), mut_arg("certify", refused))]
    Dev(DevOptions),
    /// Show what `run` would do, without starting anything
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanOptions),
    /// Write a profile for a CCM from its manifests, with a list of what is left to fill in
    #[command(after_help = INIT_EXAMPLES)]
    Init(harness_init::InitOptions),
    /// Check whether this machine can run the tests, and how to fix what is missing (exit code 3 if not)
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorOptions),
    /// List the checks
    #[command(after_help = LIST_EXAMPLES)]
    List(ListChecksOptions),
    /// Explain a name: a check or row of the contract, a time limit, a suite, a mutant, a bug
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainOptions),
    /// Print a page of the book, or the list of its pages
    #[command(after_help = DOCS_EXAMPLES)]
    Docs {
        /// Name of the page
        #[arg(value_name = "PAGE", add = ArgValueCandidates::new(complete::pages))]
        page: Option<String>,
    },
    /// Show which rows of the contract have checks, and which checks no mutant proves
    #[command(after_help = COVERAGE_EXAMPLES)]
    Coverage(ListOptions),
    /// Compare two reports: which checks are worse, better, or otherwise different (exit code 1 if any is worse)
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
    /// Show what changed over many runs: outcomes that changed, flaky checks, slower checks
    #[command(after_help = TREND_EXAMPLES)]
    Trend(TrendOptions),
    /// Find the first commit of a CCM at which a check fails
    #[command(after_help = BISECT_EXAMPLES)]
    Bisect(BisectOptions),
    /// Write the results of a run in the format of another tool
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportOptions),
    /// Merge the parts of a run that was shared with --shard into one report
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeOptions),
    /// Write the reports of a run again from its events.jsonl
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayOptions),
    /// Verify that a report matches its event stream, the checks of its version, and an image
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
    /// Print an in-toto attestation of a report, signed if a key is given
    #[command(after_help = ATTEST_EXAMPLES)]
    Attest(AttestOptions),
    /// Pack, check and list submitted reports
    #[command(subcommand)]
    Submission(SubmissionCommand),
    /// Print the JSON Schema of a file format
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema {
        /// Which file.
        #[arg(value_parser = PossibleValuesParser::new(super::schema::names()))]
        file: String,
    },
    /// Remove what earlier runs left behind
    #[command(after_help = CLEAN_EXAMPLES)]
    Clean(CleanOptions),
    /// Remove everything that a run has created when the run is killed; started by the run
    #[command(hide = true)]
    Reap {
        /// The process of the run
        run: u32,
    },
    /// Find bootstrap deadlocks in manifests, without a cluster
    #[command(subcommand)]
    Bootstrap(BootstrapCommand),
    /// Start a cluster for manual use
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Work with drivers: programs that take the place of the fake cloud
    #[command(subcommand)]
    Driver(DriverCommand),
    /// Record the calls to a cloud API as JSON lines, as a proxy in front of it
    Proxy(ProxyOptions),
    /// Write a container image that contains only this program
    #[command(after_help = IMAGE_EXAMPLES)]
    Image(ImageOptions),
    /// Print shell completions, also of check ids, suites, profiles and mutants
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionOptions),
    /// Write manual pages
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManOptions),
    /// Look for bugs that no check covers: short histories, with one fault at each point
    #[command(after_help = EXPLORE_EXAMPLES)]
    Explore(ExploreOptions),
    /// Prove the checks: broken CCMs must fail, correct but unusual ones must pass
    #[command(after_help = CONTROLS_EXAMPLES)]
    Controls(ControlOptions),
}

/// Help for `--cluster` of a command that has only one kind so far.
fn only_embedded(option: Arg) -> Arg {
    option.help("Kind of cluster: only embedded so far").hide_possible_values(true)
}

/// An option that a command refuses, with the reason: help does not offer it.
fn refused(option: Arg) -> Arg {
    option.hide(true)
}

#[derive(Debug, Subcommand)]
pub(super) enum BootstrapCommand {
    #[command(flatten)]
    Model(::bootstrap::BootstrapCommand),
    /// Compare the boot model with real clusters: apply every manifest variant and observe the boot
    #[command(after_help = PROVE_EXIT_CODES)]
    Prove(ProveOptions),
}

const PROVE_EXIT_CODES: &str = "\
Exit codes:
  0    model and measurement agree in every cell that was measured
  1    they disagree in one
  2    wrong usage; nothing was started
  3    a cell could not be measured: the machinery failed
  130  interrupted

Examples:
  ccm-conformance bootstrap prove --sample
  ccm-conformance bootstrap prove ./manifests.yaml --cluster kind --sample
  ccm-conformance bootstrap prove --random 200 --seed 7";

/// The kind of cluster that the variants are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProofCluster {
    Embedded,
    Kind,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ProveOptions {
    /// Your own manifests instead of the table: each file or folder is a variant. The reference CCM runs in place of your image
    #[arg(value_name = "PATH", conflicts_with_all = ["random", "case"])]
    pub(super) manifests: Vec<PathBuf>,
    /// Kind of cluster that the variants are applied to
    #[arg(long, value_enum, default_value_t = ProofCluster::Embedded)]
    pub(super) cluster: ProofCluster,
    /// Kubernetes version of kind clusters, or the name of a node image [default: the newest available]
    #[arg(long, value_name = "VERSION|IMAGE")]
    pub(super) kubernetes: Option<String>,
    /// Only the first cluster setup of each variant for each predicted outcome
    #[arg(long)]
    pub(super) sample: bool,
    /// Only these variants; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) case: Vec<String>,
    /// Instead of the table: this many random variants, each on one cluster setup
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with_all = ["sample", "case"], value_parser = whole::<u16>(1, 1000))]
    pub(super) random: Option<u16>,
    /// Chooses the random variants; the same seed gives the same ones
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "random", default_value_t = 1, value_parser = whole::<u64>(0, ANY))]
    pub(super) seed: u64,
    /// Folder for the manifests of random variants about which model and cluster disagree
    #[arg(long, value_name = "DIR", requires = "random", default_value = "boot-disagreements")]
    pub(super) out: PathBuf,
    /// Only these topologies; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) topology: Vec<::bootstrap::Topology>,
    /// Only these CNIs; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) cni: Vec<::bootstrap::Cni>,
    /// Number of embedded clusters at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 24, value_parser = whole::<u16>(1, 64))]
    pub(super) jobs: u16,
}

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Run an embedded cluster until interrupted: for kubectl, or a CCM under a debugger
    #[command(after_help = CLUSTER_EXAMPLES)]
    Embedded(EmbeddedOptions),
}

#[derive(Debug, Args)]
pub(super) struct EmbeddedOptions {
    /// File for the administrator's kubeconfig; must not exist, and is removed at the end
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: PathBuf,
    /// Number of Nodes, each waiting for a cloud controller manager
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = whole::<u32>(1, 10_000))]
    pub(super) nodes: u32,
    /// Kubernetes version
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub(super) kubernetes: KubernetesVersion,
    /// Also start the fake cloud, speaking this API, with a machine for each Node
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(harness_config::DIALECTS))]
    pub(super) cloud: Option<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct DoctorOptions {
    /// Check only what this kind of cluster needs [default: embedded must work]
    #[arg(long, value_name = "KIND", value_parser = words::<BackendKind>(BackendKind::WORDS))]
    pub(super) cluster: Option<BackendKind>,
    /// Fix what can be fixed without installing anything: kernel limits (as root) and the temporary folder
    #[arg(long)]
    pub(super) fix: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct CleanOptions {
    /// Also remove what belongs to runs that are, or may be, still running; asks first
    #[arg(long)]
    pub(super) all: bool,
    /// Do not ask
    #[arg(long, requires = "all")]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListChecksOptions {
    /// Only the checks of these suites, separated by commas
    #[arg(long, value_name = "SUITE", value_delimiter = ',', add = ArgValueCandidates::new(complete::suites))]
    pub(super) suite: Vec<String>,
    /// Only these checks: ids (that of a row names all of its checks), suites, or patterns with *, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',', add = ArgValueCandidates::new(complete::checks))]
    pub(super) only: Vec<String>,
    /// Only checks of these levels, separated by commas
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', value_enum, ignore_case = true)]
    pub(super) level: Vec<ListedLevel>,
    /// Only the checks of this profile of conformance, such as 'node' or 'load-balancer'
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::conformance_profiles))]
    pub(super) profile: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct CompletionOptions {
    /// Shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// Folder for the pages, created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "man")]
    pub(super) out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ImageOptions {
    /// Archive to write
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Name and tag of the image
    #[arg(long, value_name = "NAME:TAG", default_value = "ccm-conformance:latest", value_parser = image_reference)]
    pub(super) reference: String,
}

/// A text that can be the name of an image.
fn image_reference(text: &str) -> Result<String, String> {
    harness_config::check_image_reference(text).map(|()| text.to_owned())
}

#[derive(Debug, Args)]
pub(super) struct ExplainOptions {
    /// Check (NODE-INIT-10.list), row of the contract (NODE-INIT-10), time limit (B-WATCH), suite, mutant or other name
    #[arg(value_name = "ID", required = true, value_delimiter = ',', add = ArgValueCandidates::new(complete::explained))]
    pub(super) ids: Vec<String>,
}
