//! The arguments of every command.

mod complete;
mod driver;
mod proxy;
mod run;
mod submission;

pub(super) use complete::know;
pub(super) use driver::{DriverCommand, DriverOptions, InitCloudOptions, InitCommand, Language};
pub(super) use proxy::ProxyOptions;
pub(super) use run::{PlanOptions, RunOptions};
pub(super) use submission::{PackOptions, SubmissionCommand};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use embedded_cluster::KubernetesVersion;
use harness_config::{BackendChoice, BackendKind, ClusterKeys, Keep, OutputKeys, RunFile};
use harness_core::ledger::Share;
use harness_report::sha256_digest;
use std::path::PathBuf;
use std::str::FromStr;

/// Conformance tests for Kubernetes cloud controller managers
#[derive(Debug, Parser)]
#[command(name = "ccm-conformance", version, after_help = EXIT_CODES)]
pub(super) struct Cli {
    /// Whether output has colours; NO_COLOR and CLICOLOR_FORCE count if it is 'auto'
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Whether output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// What was asked for; `None` leaves it to the terminal.
    pub(super) fn wanted(self) -> Option<bool> {
        match self {
            Color::Auto => None,
            Color::Always => Some(true),
            Color::Never => Some(false),
        }
    }
}

/// Accepts the words of a type that is read from them, and shows them in help and completions.
fn words<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

const EXIT_CODES: &str = "\
Exit codes:
  0    conformant, or partial (with --require-complete: conformant only)
  1    a MUST check failed
  2    wrong usage or configuration; nothing was started
  3    the environment (Docker, cluster, cloud, CCM) failed and no MUST check failed,
       or the report could not be written
  4    no check was selected
  130  interrupted

Example:
  ccm-conformance run --cluster embedded --only NODE-INIT-01";

const RUN_EXAMPLES: &str = "\
Examples:
  ccm-conformance run                                             the reference CCM
  ccm-conformance run --profile ./acme --binary ./acme-ccm --cluster embedded
  ccm-conformance run --profile ./acme --image acme-ccm:v1 --cluster kind --only 'SVC-*'
  ccm-conformance run --quiet --max-fail 1 --output json";

const PLAN_EXAMPLES: &str = "\
Examples:
  ccm-conformance plan --profile ./acme
  ccm-conformance plan --cluster kind --suite routes";

const LIST_EXAMPLES: &str = "\
Examples:
  ccm-conformance list --suite routes --level must
  ccm-conformance list --profile load-balancer --output json";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ccm-conformance explain NODE-INIT-01                            a check
  ccm-conformance explain SVC-UPD-01                              a row of the contract, with all its claims";

const MERGE_EXAMPLES: &str = "\
Example:
  ccm-conformance merge part-1 part-2 part-3 --out merged";

const REPLAY_EXAMPLES: &str = "\
Example:
  ccm-conformance replay conformance-results/events.jsonl --out again";

const ATTEST_EXAMPLES: &str = "\
Example:
  ccm-conformance attest conformance-results/report.yaml --key key.pem > attestation.json";

const IMAGE_EXAMPLES: &str = "\
Example:
  ccm-conformance image --out image.tar                           then: docker load --input image.tar";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(ccm-conformance completions bash)
  ccm-conformance completions fish > ~/.config/fish/completions/ccm-conformance.fish";

const MAN_EXAMPLES: &str = "\
Example:
  ccm-conformance man --out man                                   then: man -l man/ccm-conformance-run.1";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  ccm-conformance doctor --cluster kind
  ccm-conformance doctor --output json";

const CLEAN_EXAMPLES: &str = "\
Examples:
  ccm-conformance clean                                           what ended runs left
  ccm-conformance clean --all --yes                               also what belongs to running ones";

const CLUSTER_EXAMPLES: &str = "\
Examples:
  ccm-conformance cluster embedded --kubeconfig kc --nodes 3
  ccm-conformance cluster embedded --kubeconfig kc --cloud hcloud";

const INIT_EXAMPLES: &str = "\
Example:
  ccm-conformance init --manifests deploy/ --name acme            writes ./acme";

const VERIFY_EXAMPLES: &str = "\
Example:
  ccm-conformance verify conformance-results/report.yaml";

const COMPARE_EXAMPLES: &str = "\
Exit codes:
  0  no check is worse
  1  a check is worse
  2  a report cannot be read

Examples:
  ccm-conformance compare old/report.yaml new/report.yaml
  ccm-conformance compare old/report.yaml new/report.yaml --output json";

const CONTROLS_EXAMPLES: &str = "\
Examples:
  ccm-conformance controls --list
  ccm-conformance controls --cluster embedded --mutant M-NI-01";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Test a CCM: create a cluster and a fake cloud, run the checks, write a report, clean up
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunOptions),
    /// Show what `run` would do, without starting anything
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanOptions),
    /// Write a profile for a CCM from its manifests, with a list of what is left to fill in
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitOptions),
    /// Check whether this machine can run the tests, and how to fix what is missing (exit code 3 if not)
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorOptions),
    /// List the checks
    #[command(after_help = LIST_EXAMPLES)]
    List(ListChecksOptions),
    /// Explain a check or a row of the contract: what is required, why, and how to see it by hand
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainOptions),
    /// Show which rows of the contract have checks, and which checks no mutant proves (exit code 1 for gaps)
    Coverage(ListOptions),
    /// Compare two reports: which checks are worse, better, or otherwise different (exit code 1 if any is worse)
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
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
    Schema {
        /// Which file.
        #[arg(value_parser = PossibleValuesParser::new(super::schema::names()))]
        file: String,
    },
    /// Remove what earlier runs left behind
    #[command(after_help = CLEAN_EXAMPLES)]
    Clean(CleanOptions),
    /// Takes away what a run has made when the run is killed; started by the run.
    #[command(hide = true)]
    Reap {
        /// The process of the run.
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
    /// Prove the checks: broken CCMs must fail, correct but unusual ones must pass
    #[command(after_help = CONTROLS_EXAMPLES)]
    Controls(ControlOptions),
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
  130  interrupted";

/// What variants are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProofCluster {
    Embedded,
    Kind,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ProveOptions {
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
    /// Only these topologies; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) topology: Vec<::bootstrap::Topology>,
    /// Only these CNIs; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) cni: Vec<::bootstrap::Cni>,
    /// Number of embedded clusters at the same time
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=64))]
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(super) nodes: u32,
    /// Kubernetes version
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub(super) kubernetes: KubernetesVersion,
    /// Also start the fake cloud, speaking this API, with a machine for each Node
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(harness_config::DIALECTS))]
    pub(super) cloud: Option<String>,
}

/// Headings of the options' help.
const WHICH: &str = "What is judged";
const CLUSTER: &str = "Cluster";

#[derive(Clone, Debug, Default, Args)]
pub(super) struct ControlOptions {
    /// Only these mutants, separated by commas; 'all' also includes no CCM at all [default: everything, if
    /// --stranger and --adversary are absent too]
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(complete::mutants))]
    pub(super) mutant: Vec<String>,
    /// Only these conforming variants (correct but unusual CCMs), separated by commas, or 'all'
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(complete::strangers))]
    pub(super) stranger: Vec<String>,
    /// Only these adversaries (hostile CCMs), separated by commas, or 'all'
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = WHICH, add = ArgValueCandidates::new(complete::adversaries))]
    pub(super) adversary: Vec<String>,
    /// List all mutants, conforming variants and adversaries, or those of the other options, and judge nothing
    #[arg(long, help_heading = WHICH)]
    pub(super) list: bool,
    /// Only part K of N of 'all', to share the work among machines or to take a sample
    #[arg(long, value_name = "K/N", value_parser = Share::from_str, help_heading = WHICH)]
    pub(super) share: Option<Share>,
    /// Kind of cluster [default: auto] [env: CCM_CONFORMANCE_CLUSTER]
    #[arg(long, value_name = "KIND", value_parser = words::<BackendChoice>(BackendChoice::WORDS), help_heading = CLUSTER)]
    cluster: Option<BackendChoice>,
    /// Kubernetes version, or the name of a node image [default: the newest available]
    #[arg(long, value_name = "VERSION|IMAGE", help_heading = CLUSTER)]
    kubernetes: Option<String>,
    /// Number of clusters at the same time [default: 1 with kind, 16 embedded]
    #[arg(long, value_name = "N", help_heading = CLUSTER)]
    pub(super) side_by_side: Option<usize>,
    /// Folder for evidence, with a subfolder for each CCM
    #[arg(long, value_name = "DIR", default_value = "conformance-results/controls")]
    out: String,
    /// Whether to keep the cluster after the run [default: never]
    #[arg(long, value_name = "WHEN", value_parser = words::<Keep>(Keep::WORDS))]
    keep: Option<Keep>,
}

impl ControlOptions {
    /// What was typed, in the run file's form.
    pub(super) fn overrides(&self) -> RunFile {
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
pub(super) struct CompareOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(super) output: ListOutput,
    /// Only checks that both runs judged
    #[arg(long)]
    pub(super) judged: bool,
    /// Also write an HTML page that compares both runs, with details if events.jsonl is next to each report
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// The earlier report.yaml
    #[arg(value_name = "OLD")]
    pub(super) before: PathBuf,
    /// The later report.yaml
    #[arg(value_name = "NEW")]
    pub(super) after: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct MergeOptions {
    /// Output folder of each part, in any order
    #[arg(value_name = "DIR", required = true)]
    pub(super) shards: Vec<PathBuf>,
    /// Folder for the merged results
    #[arg(long, value_name = "DIR", default_value = "conformance-results")]
    pub(super) out: PathBuf,
    /// Exit with 1 if the result is partial; implied if the parts were run with --certify
    #[arg(long)]
    pub(super) require_complete: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReplayOptions {
    /// Event stream of the run: events.jsonl or events.jsonl.gz
    #[arg(value_name = "FILE")]
    pub(super) events: PathBuf,
    /// Folder for report.yaml, junit.xml and report.html [default: that of the stream]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct VerifyOptions {
    /// A report.yaml
    #[arg(value_name = "REPORT", required_unless_present = "attestation")]
    pub(super) report: Option<PathBuf>,
    /// Event stream of its run [default: events.jsonl or events.jsonl.gz next to the report]
    #[arg(long, value_name = "FILE", requires = "report")]
    pub(super) events: Option<PathBuf>,
    /// Digest that the tested image or program must have: sha256:HEX or IMAGE@sha256:HEX
    #[arg(long, value_name = "DIGEST", value_parser = sha256_digest)]
    pub(super) image: Option<String>,
    /// A signed attestation; with a report, it must be about that report
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) attestation: Option<PathBuf>,
    /// Public key of the attestation, in PEM
    #[arg(long, value_name = "PUBLIC", requires = "attestation")]
    pub(super) key: Option<PathBuf>,
    /// Exit with 1 if the result is partial
    #[arg(long)]
    pub(super) require_complete: bool,
}

#[derive(Debug, Args)]
pub(super) struct AttestOptions {
    /// A report.yaml
    #[arg(value_name = "REPORT")]
    pub(super) report: PathBuf,
    /// Event stream of its run [default: events.jsonl or events.jsonl.gz next to the report]
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Private key: PEM, PKCS#8, ECDSA P-256 or Ed25519 [default: print the unsigned statement]
    #[arg(long, value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// URL of the run, such as a CI job
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
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

/// A level of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListedLevel {
    Must,
    Should,
    Info,
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = ListOutput::Text)]
    pub(super) output: ListOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ListOutput {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group(clap::ArgGroup::new("from").required(true).multiple(true).args(["manifests", "helm", "kustomize"])))]
pub(super) struct InitOptions {
    #[command(subcommand)]
    pub(super) what: Option<InitCommand>,
    /// Manifest file or folder, or '-' for standard input; may be repeated
    #[arg(long, value_name = "DIR|FILE|-")]
    pub(super) manifests: Vec<PathBuf>,
    /// Helm chart, rendered with helm
    #[arg(long, value_name = "CHART")]
    pub(super) helm: Option<PathBuf>,
    /// Values file for the chart; may be repeated
    #[arg(long, value_name = "FILE", requires = "helm")]
    pub(super) values: Vec<PathBuf>,
    /// Folder with a kustomization, built with kubectl
    #[arg(long, value_name = "DIR")]
    pub(super) kustomize: Option<PathBuf>,
    /// Workload of the CCM, if several look like one
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(super) workload: Option<String>,
    /// Container of the CCM in that workload [default: the first]
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub(super) container: Option<String>,
    /// Name of the CCM in reports [default: that of its provider]
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Folder to write, which must not exist [default: the name of the CCM]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
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
    #[arg(long, value_name = "NAME:TAG", default_value = "ccm-conformance:latest")]
    pub(super) reference: String,
}

#[derive(Debug, Args)]
pub(super) struct ExplainOptions {
    /// Row of the contract (NODE-INIT-10) or check (NODE-INIT-10.list)
    #[arg(add = ArgValueCandidates::new(complete::explained))]
    pub(super) id: String,
}
