//! What was typed.

mod driver;
mod proxy;
mod run;
mod submission;

pub(super) use driver::{DriverCommand, DriverOptions, InitCloudOptions, InitCommand, Language};
pub(super) use proxy::ProxyOptions;
pub(super) use run::RunOptions;
pub(super) use submission::{PackOptions, SubmissionCommand};

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use embedded_cluster::KubernetesVersion;
use harness_config::{BackendChoice, BackendKind, ClusterKeys, Keep, OutputKeys, RunFile};
use harness_core::ledger::Share;
use harness_report::sha256_digest;
use std::path::PathBuf;
use std::str::FromStr;

/// Judges a Kubernetes cloud controller manager on a cluster made for the purpose.
#[derive(Debug, Parser)]
#[command(name = "ccm-conformance", version, after_help = EXIT_CODES)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    conformant, or partial (with --require-complete: conformant only)
  1    a MUST check failed
  2    wrong usage or configuration; nothing was started
  3    the environment (Docker, cluster, cloud, CCM) did not come up or failed a check, and no MUST check failed;
       or the report could not be written
  4    nothing was selected
  130  interrupted";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Bring up a cluster, a fake cloud and the CCM, run the checks, write the report, take everything down.
    Run(RunOptions),
    /// Say what `run` would do; starts nothing and needs no Docker.
    Plan(RunOptions),
    /// Describe a CCM from its manifests: a profile with a comment for each guess, and a list of what they do not say.
    Init(InitOptions),
    /// Say what this machine can run, what it lacks, and how to mend that; exit code 3 where it can run nothing.
    Doctor(DoctorOptions),
    /// List every check: id, level, title, suite, source, what it needs.
    List(ListOptions),
    /// Explain a row of the contract, or a check: what is required and why, and how to see it by hand.
    Explain(ExplainOptions),
    /// Which rows of the contract the checks judge; exit code 1 where a MUST has neither check nor reason, or where no
    /// mutant is to fail a check that binds.
    Coverage(ListOptions),
    /// Which checks ended otherwise in one report than in another: two releases of a CCM, or two clusters.
    Compare(CompareOptions),
    /// Make one report of the parts of a run that machines have shared with --shard: one stream, one verdict, one page.
    Merge(MergeOptions),
    /// Write the reports of a run again, from its events.jsonl.
    Replay(ReplayOptions),
    /// Is a report what it says? Holds it against its events, the checks of its version, and an image.
    Verify(VerifyOptions),
    /// Print an in-toto statement of a report, in a signed envelope where there is a key.
    Attest(AttestOptions),
    /// Reports for others to see: pack one, check what was submitted, list it.
    #[command(subcommand)]
    Submission(SubmissionCommand),
    /// Print the JSON Schema of a file: for editors, and for programs that read or write one.
    Schema {
        /// Which file.
        #[arg(value_parser = PossibleValuesParser::new(super::schema::names()))]
        file: String,
    },
    /// Remove what earlier runs left behind.
    Clean(CleanOptions),
    /// Takes away what a run has made when the run is killed; started by the run.
    #[command(hide = true)]
    Reap {
        /// The process of the run.
        run: u32,
    },
    /// Will a cluster boot with these manifests? Needs no cluster and no Docker.
    #[command(subcommand)]
    Bootstrap(BootstrapCommand),
    /// Start a cluster by hand.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// The driver protocol, by which a cloud or simulator of your own takes the fake cloud's place.
    #[command(subcommand)]
    Driver(DriverCommand),
    /// Stand before any HTTP cloud and write down what is asked of it: each call as a line of JSON, by what it means.
    Proxy(ProxyOptions),
    /// Write a container image of this program, with nothing else in it, for 'docker load' and any tool of the OCI's.
    Image(ImageOptions),
    /// Print a shell's completions of this program.
    Completions(CompletionOptions),
    /// Write manual pages of this program and its commands.
    Man(ManOptions),
    /// Prove the checks: with no CCM and with mutants of the reference CCM they must fail, with strangers they must not.
    Controls(ControlOptions),
}

#[derive(Debug, Subcommand)]
pub(super) enum BootstrapCommand {
    #[command(flatten)]
    Model(::bootstrap::BootstrapCommand),
    /// Hold the model against reality: apply every variant of the table to a cluster of every cell and see what happens.
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
    /// What the variants are applied to: clusters in this process, or kind clusters (real kubelets; takes Docker).
    #[arg(long, value_enum, default_value_t = ProofCluster::Embedded)]
    pub(super) cluster: ProofCluster,
    /// Kubernetes of kind clusters by its version, or by the node image's name; without it the newest at hand.
    #[arg(long, value_name = "VERSION|IMAGE")]
    pub(super) kubernetes: Option<String>,
    /// Of each variant only the first cell for each verdict of the model.
    #[arg(long)]
    pub(super) sample: bool,
    /// Only these variants; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(super) case: Vec<String>,
    /// Only these topologies; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) topology: Vec<::bootstrap::Topology>,
    /// Only these CNIs; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) cni: Vec<::bootstrap::Cni>,
    /// How many cells are measured side by side on embedded clusters, each on one of its own.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) jobs: u16,
}

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// A control plane in this process, without Docker: for kubectl, a CCM under a debugger or any other client.
    Embedded(EmbeddedOptions),
}

#[derive(Debug, Args)]
pub(super) struct EmbeddedOptions {
    /// Where an administrator's kubeconfig is written; removed at the end. It must not exist yet.
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: PathBuf,
    /// Nodes, each waiting for a cloud controller manager.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(super) nodes: u32,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub(super) kubernetes: KubernetesVersion,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct ControlOptions {
    /// Only these mutants; may be repeated, and 'all' are all of them and no CCM at all. Without this, --stranger and
    /// --adversary all of all three are judged.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) mutant: Vec<String>,
    /// Only these strangers, CCMs that are right in an unusual way; may be repeated, and 'all' are all of them.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) stranger: Vec<String>,
    /// Only these adversaries, CCMs that are hostile; may be repeated, and 'all' are all of them.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(super) adversary: Vec<String>,
    /// Of what 'all' stands for only the Kth of N shares, so that machines can share the work, or a short run takes a sample.
    #[arg(long, value_name = "K/N", value_parser = Share::from_str)]
    pub(super) share: Option<Share>,
    /// Where the controls run; 'auto', the default, takes kind where Docker, kind and a node image are there. Without it
    /// the environment's CCM_CONFORMANCE_CLUSTER is asked.
    #[arg(long, value_name = "auto|kind|embedded", value_parser = BackendChoice::from_str)]
    cluster: Option<BackendChoice>,
    /// Kubernetes by its version, or by the node image's name; without it the newest at hand.
    #[arg(long, value_name = "VERSION|IMAGE")]
    kubernetes: Option<String>,
    /// How many clusters judge side by side. Default: 1 with kind, 16 embedded.
    #[arg(long, value_name = "N")]
    pub(super) side_by_side: Option<usize>,
    /// Folder for evidence, one below it for each CCM.
    #[arg(long, value_name = "DIR", default_value = "conformance-results/controls")]
    out: String,
    /// Whether the environment stays after the run.
    #[arg(long, value_name = "never|on-failure|always", value_parser = Keep::from_str)]
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
    /// Only what this cluster needs; exit code 3 where it cannot be had. Without it the embedded one has to work.
    #[arg(long, value_name = "kind|embedded|existing", value_parser = BackendKind::from_str)]
    pub(super) cluster: Option<BackendKind>,
    /// Mend what can be mended with the rights at hand: limits of the kernel (as root, until the next boot) and a folder
    /// for temporary files. Installs nothing.
    #[arg(long)]
    pub(super) fix: bool,
    /// How it is written.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct CompareOptions {
    /// Only checks that both runs judged: not those that one skipped.
    #[arg(long)]
    pub(super) judged: bool,
    /// Write a page of both runs, too, in the form of report.html. Of a report whose events.jsonl lies beside it the page tells
    /// what happened.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// A report.yaml.
    #[arg(value_name = "REPORT")]
    pub(super) before: PathBuf,
    /// Another one.
    #[arg(value_name = "REPORT")]
    pub(super) after: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct MergeOptions {
    /// The output folder of each part, in any order; all of one run.
    #[arg(value_name = "DIR", required = true)]
    pub(super) shards: Vec<PathBuf>,
    /// Folder for the merged results.
    #[arg(long, value_name = "DIR", default_value = "conformance-results")]
    pub(super) out: PathBuf,
    /// A partial result is exit code 1; so it is without this where the parts were to certify.
    #[arg(long)]
    pub(super) require_complete: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReplayOptions {
    /// The stream of the run's events: events.jsonl in its output folder, or packed as events.jsonl.gz
    #[arg(value_name = "FILE")]
    pub(super) events: PathBuf,
    /// Folder for report.yaml, junit.xml and report.html; without it that of the stream.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct VerifyOptions {
    /// A report.yaml.
    #[arg(value_name = "REPORT", required_unless_present = "attestation")]
    pub(super) report: Option<PathBuf>,
    /// The stream of its run's events [default: events.jsonl or events.jsonl.gz beside it]
    #[arg(long, value_name = "FILE", requires = "report")]
    pub(super) events: Option<PathBuf>,
    /// The digest of the image or program that it has to be about: sha256:HEX or IMAGE@sha256:HEX.
    #[arg(long, value_name = "DIGEST", value_parser = sha256_digest)]
    pub(super) image: Option<String>,
    /// A signed envelope of `attest`; with a report it has to be of that report.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(super) attestation: Option<PathBuf>,
    /// The public key that signed it, in PEM.
    #[arg(long, value_name = "PUBLIC", requires = "attestation")]
    pub(super) key: Option<PathBuf>,
    /// A partial result is exit code 1.
    #[arg(long)]
    pub(super) require_complete: bool,
}

#[derive(Debug, Args)]
pub(super) struct AttestOptions {
    /// A report.yaml.
    #[arg(value_name = "REPORT")]
    pub(super) report: PathBuf,
    /// The stream of its run's events [default: events.jsonl or events.jsonl.gz beside it]
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// A private key in PEM and PKCS#8, of ECDSA on P-256 or of Ed25519; without it the bare statement is printed.
    #[arg(long, value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// Where the run can be looked at.
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CleanOptions {
    /// What belongs to runs that go on, or may go on, too; asks before.
    #[arg(long)]
    pub(super) all: bool,
    /// Do not ask.
    #[arg(long, requires = "all")]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListOptions {
    /// How the list is written.
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
    /// A manifest file, a folder of them, or '-' for standard input; may be repeated.
    #[arg(long, value_name = "DIR|FILE|-")]
    pub(super) manifests: Vec<PathBuf>,
    /// A Helm chart, rendered by the program helm.
    #[arg(long, value_name = "CHART")]
    pub(super) helm: Option<PathBuf>,
    /// Values for the chart; may be repeated.
    #[arg(long, value_name = "FILE", requires = "helm")]
    pub(super) values: Vec<PathBuf>,
    /// A folder with a kustomization, built by the program kubectl.
    #[arg(long, value_name = "DIR")]
    pub(super) kustomize: Option<PathBuf>,
    /// The CCM's workload among the manifests, where several are like one.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(super) workload: Option<String>,
    /// Its container, where the first is another.
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub(super) container: Option<String>,
    /// The CCM's name in reports; without it that of its provider.
    #[arg(long)]
    pub(super) name: Option<String>,
    /// The folder to write, which is not there yet; without it the CCM's name.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CompletionOptions {
    /// The shell.
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// Folder for the pages; made where it is not there.
    #[arg(long, value_name = "DIR", default_value = "man")]
    pub(super) out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ImageOptions {
    /// The archive to write.
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// The image's name and tag.
    #[arg(long, value_name = "NAME:TAG", default_value = "ccm-conformance:latest")]
    pub(super) reference: String,
}

#[derive(Debug, Args)]
pub(super) struct ExplainOptions {
    /// A row of the contract (NODE-INIT-10), or one of its checks (NODE-INIT-10.list).
    pub(super) id: String,
}
