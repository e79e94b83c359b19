//! The options of `run` and `plan`.

use super::ccm::{CCM, CcmOptions};
use super::complete::{checks, suites, topologies};
use super::values::{whole, words};
use clap::{Args, ValueEnum, ValueHint};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use harness_config::{
    BackendChoice, ClusterKeys, HumanDuration, Keep, NodeIp, OutputKeys, ProviderId, RunFile, SelectKeys,
    Source, Timing, UpgradeKeys,
};
use harness_core::ledger::Share;
use harness_core::progress::Verbosity;
use harness_runner::{Shown, ShownAs};
use std::path::PathBuf;
use std::str::FromStr;

/// The variable in which the Pods of an Indexed Job have their completion index, from 0.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// Parses a part from the command line.
pub(super) fn shard(text: &str) -> Result<Share, String> {
    part(text, std::env::var(INDEX).ok().as_deref())
}

/// Parses a part from the command line, in a Pod with this completion index.
fn part(text: &str, index: Option<&str>) -> Result<Share, String> {
    let Some(count) = text.strip_prefix("job/") else { return Share::from_str(text) };
    let index =
        index.ok_or_else(|| format!("{INDEX} is not set: this is not a Pod of an Indexed Job; write K/N"))?;
    let index: usize = index.parse().map_err(|_| format!("{INDEX} is '{index}', which is not a number"))?;
    let share = Share::from_str(&format!("{}/{count}", index.saturating_add(1)));
    share.map_err(|why| format!("completion index {index}: {why}; N is the Job's number of completions"))
}

/// Parses the description of an old release: parts separated by commas.
fn old_release(text: &str) -> Result<UpgradeKeys, String> {
    const FORM: &str = "write profile:NAME, profile:PATH, image:IMAGE or binary:PATH";
    let mut keys = UpgradeKeys::default();
    for part in text.split(',') {
        let (kind, value) = part.split_once(':').unwrap_or((part, ""));
        let place = match kind {
            "profile" => &mut keys.profile,
            "image" => &mut keys.image,
            "binary" => &mut keys.binary,
            "" => return Err(format!("a comma has nothing before or after it; {FORM}")),
            name if value.is_empty() => {
                return Err(format!("did you mean 'profile:{name}' or 'binary:{name}'? {FORM}"));
            }
            other => return Err(format!("'{other}' is unknown; {FORM}")),
        };
        if value.is_empty() {
            return Err(format!("'{kind}:' has no value; {FORM}"));
        }
        if place.replace(value.to_owned()).is_some() {
            return Err(format!("'{kind}:' is given twice"));
        }
    }
    Ok(keys)
}

/// Headings of the options' help.
const CLUSTER: &str = "Cluster";
const CHECKS: &str = "Checks";
const RESULT: &str = "Results";
const PACE: &str = "Speed and repetition";

const SHOWN: &str = "What is shown";

/// The options of `run`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) shared: SharedOptions,
    /// Show the page of the run in a browser on this machine while it runs
    #[arg(long, conflicts_with = "repeat", help_heading = SHOWN)]
    pub(crate) watch: bool,
    /// Form of the checks on standard output: lines for people, an object per line, annotations, or TAP version 14
    #[arg(long, value_name = "FORM", value_enum, default_value_t, help_heading = SHOWN)]
    output: OutputForm,
    /// Show only failures, errors and the verdict
    #[arg(short, long, conflicts_with = "verbose", help_heading = SHOWN)]
    quiet: bool,
    /// Also show when each check starts, and why others are left out
    #[arg(short, long, help_heading = SHOWN)]
    verbose: bool,
    #[command(flatten)]
    pub(crate) repetition: RepetitionOptions,
    /// Run as a Sonobuoy plugin that shares this folder with Sonobuoy
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "repeat", "watch"], help_heading = RESULT)]
    pub(crate) sonobuoy_results: Option<PathBuf>,
}

impl RunOptions {
    /// Judges and shows the checks, so many at the same time.
    pub(crate) fn shown(&self, jobs: u32) -> Shown {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        };
        Shown {
            at_once: jobs as usize,
            form: self.output.into(),
            verbosity,
            max_fail: self.repetition.max_fail.map(|most| most as usize),
        }
    }
}

/// How often the checks run, and when they end early.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RepetitionOptions {
    /// Start no further check after N failures [default: run all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 1000), help_heading = PACE)]
    pub(crate) max_fail: Option<u32>,
    /// Run N times, each in a fresh environment, and report checks whose outcomes differ
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 1000), help_heading = PACE)]
    pub(crate) repeat: Option<u32>,
}

/// The form in which checks are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    #[default]
    Text,
    Json,
    Github,
    Tap,
}

impl From<OutputForm> for ShownAs {
    fn from(form: OutputForm) -> ShownAs {
        match form {
            OutputForm::Text => ShownAs::Text,
            OutputForm::Json => ShownAs::Json,
            OutputForm::Github => ShownAs::Github,
            OutputForm::Tap => ShownAs::Tap,
        }
    }
}

/// The options of `plan`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlanOptions {
    #[command(flatten)]
    pub(crate) shared: SharedOptions,
    #[command(flatten)]
    pub(crate) repetition: RepetitionOptions,
    /// List each check that would not run, instead of counting those with the same reason
    #[arg(long, help_heading = SHOWN)]
    pub(crate) all: bool,
}

/// The options of `dev`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DevOptions {
    #[command(flatten)]
    pub(crate) shared: SharedOptions,
    /// Command of the shell that builds the program; it runs at the start and when a source changes
    #[arg(long, value_name = "COMMAND", help_heading = CCM)]
    pub(crate) build: Option<String>,
    /// Folder of the sources for --build; hidden files and those of its .gitignore do not count [default: .]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true, requires = "build", help_heading = CCM)]
    pub(crate) source: PathBuf,
}

/// The options that `run` and `plan` have.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SharedOptions {
    /// Read options from a run file; options on the command line override it
    #[arg(long, value_name = "FILE", help_heading = CCM)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    ccm: CcmOptions,
    /// Also judge the upgrade from this release to the CCM: profile:NAME or profile:PATH, image:IMAGE, binary:PATH; a profile
    /// and an image or program can be given together, separated by a comma
    #[arg(long, value_name = "RELEASE", value_parser = old_release, help_heading = CCM)]
    upgrade_from: Option<UpgradeKeys>,
    /// Kind of cluster [default: auto] [env: CCM_CONFORMANCE_CLUSTER]
    #[arg(long, value_name = "KIND", value_parser = words::<BackendChoice>(BackendChoice::WORDS), help_heading = CLUSTER)]
    cluster: Option<BackendChoice>,
    /// Machines: single, two-node, three-node, no-cni, dual-stack or a kind configuration file [default: single]
    #[arg(long, value_name = "NAME|PATH", help_heading = CLUSTER, add = ArgValueCompleter::new(topologies))]
    topology: Option<String>,
    /// Kubernetes version, or the name of a node image; 'run' and 'plan' take several, separated by commas [default: the
    /// newest available]
    #[arg(long, value_name = "VERSION|IMAGE", value_delimiter = ',', help_heading = CLUSTER)]
    kubernetes: Vec<String>,
    /// Kubeconfig of the existing cluster
    #[arg(long, value_name = "FILE", help_heading = CLUSTER, value_hint = ValueHint::AnyPath)]
    kubeconfig: Option<String>,
    /// Use an existing cluster even if it seems to be in use; its Services and Nodes may be lost
    #[arg(long, help_heading = CLUSTER)]
    allow_foreign_cluster: bool,
    /// providerID with which kubelets register [default: empty]
    #[arg(long, value_name = "WHICH", value_parser = words::<ProviderId>(ProviderId::WORDS), help_heading = CLUSTER)]
    provider_id: Option<ProviderId>,
    /// Whether kubelets keep the --node-ip of kind [default: kept]
    #[arg(long, value_name = "WHICH", value_parser = words::<NodeIp>(NodeIp::WORDS), help_heading = CLUSTER)]
    node_ip: Option<NodeIp>,
    /// Random seed of the embedded cluster's timing and of a soak; the report names the one that was used
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = whole::<u32>(0, u32::MAX.into()), help_heading = CLUSTER)]
    seed: Option<u32>,
    /// Run only these suites, separated by commas
    #[arg(long, value_name = "SUITE", value_delimiter = ',', help_heading = CHECKS, add = ArgValueCandidates::new(suites))]
    suite: Vec<String>,
    /// Run only these checks: ids (that of a row selects all of its checks), suites, or patterns with *, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = CHECKS, add = ArgValueCandidates::new(checks))]
    only: Vec<String>,
    /// Skip these checks, named in the same way
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = CHECKS, add = ArgValueCandidates::new(checks))]
    skip: Vec<String>,
    /// Run only the checks that failed, were blocked, met an environment error or were interrupted in this report
    #[arg(long, value_name = "REPORT", conflicts_with = "only", help_heading = CHECKS)]
    pub(crate) failed_from: Option<PathBuf>,
    /// Skip checks that take five seconds or more, except those of --only: for quick feedback, not for a verdict
    #[arg(long, help_heading = CHECKS)]
    quick: bool,
    /// Run part K of N, to share a run among machines (see 'merge'); job/N in a Pod of an Indexed Job
    #[arg(long, value_name = "K/N", value_parser = shard, help_heading = CHECKS)]
    shard: Option<Share>,
    /// Name of the shared run, such as a CI build number; 'merge' refuses parts of different runs
    #[arg(long, value_name = "NAME", requires = "shard", help_heading = CHECKS)]
    shard_of: Option<String>,
    /// Also disturb Nodes, Services, cloud and leaders at random for this long, for example 10m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = HumanDuration::from_str, help_heading = CHECKS)]
    soak: Option<HumanDuration>,
    /// Folder for report.html, report.yaml, junit.xml and evidence [default: conformance-results]
    #[arg(long, value_name = "DIR", help_heading = RESULT, value_hint = ValueHint::DirPath)]
    out: Option<String>,
    /// Exit with 1 if the result is partial
    #[arg(long, help_heading = RESULT)]
    require_complete: bool,
    /// As --require-complete, and refuse at once what would make the result partial
    #[arg(long, help_heading = RESULT)]
    certify: bool,
    /// Whether to keep the cluster after the run [default: never]
    #[arg(long, value_name = "WHEN", value_parser = words::<Keep>(Keep::WORDS), help_heading = RESULT)]
    keep: Option<Keep>,
    /// Number of checks that run at the same time on each cluster
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 256), help_heading = PACE)]
    jobs: Option<u32>,
    /// Number of clusters to divide the checks among, each with its own cloud and CCM
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u32>(1, 16), help_heading = PACE)]
    clusters: Option<u32>,
    /// Timing of leader election; 'default' is the CCM's own [default: fast]
    #[arg(long, value_name = "WHICH", value_parser = words::<Timing>(Timing::WORDS), help_heading = PACE)]
    timing: Option<Timing>,
}

impl SharedOptions {
    /// Where the run file is, if any.
    pub(crate) fn source(&self) -> Source {
        self.config.clone().map_or(Source::Defaults, Source::File)
    }

    /// The versions of Kubernetes, or node images.
    pub(crate) fn kubernetes(&self) -> &[String] {
        &self.kubernetes
    }

    /// The options in the form of a run file. It has no version if there are several: each needs a run of its own.
    pub(crate) fn overrides(&self) -> RunFile {
        let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
        RunFile {
            profile: self.ccm.profile.clone(),
            image: self.ccm.image.clone(),
            binary: self.ccm.binary.clone(),
            upgrade_from: self.upgrade_from.clone().unwrap_or_default(),
            cluster: ClusterKeys {
                backend: self.cluster,
                topology: self.topology.clone(),
                kubernetes: match self.kubernetes.as_slice() {
                    [one] => Some(one.clone()),
                    _ => None,
                },
                kubeconfig: self.kubeconfig.clone(),
                allow_foreign: self.allow_foreign_cluster.then_some(true),
                provider_id: self.provider_id,
                node_ip: self.node_ip,
                seed: self.seed,
            },
            select: SelectKeys {
                suites: some(&self.suite),
                only: some(&self.only),
                skip: some(&self.skip),
                quick: self.quick.then_some(true),
                shard: self.shard.map(|share| share.to_string()),
                run: self.shard_of.clone(),
            },
            output: OutputKeys { dir: self.out.clone() },
            soak: self.soak,
            keep: self.keep,
            jobs: self.jobs,
            clusters: self.clusters,
            require_complete: self.require_complete.then_some(true),
            certify: self.certify.then_some(true),
            timing: self.timing,
            ..RunFile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{old_release, part};

    #[test]
    fn an_old_release_is_a_profile_an_image_or_a_program() {
        let all = old_release("profile:./old,image:registry.example:5000/ccm:v1").expect("two parts");
        assert_eq!(all.profile.as_deref(), Some("./old"));
        assert_eq!(all.image.as_deref(), Some("registry.example:5000/ccm:v1"));
        assert_eq!(all.binary, None);
        for (wrong, why) in [
            ("./old", "did you mean 'profile:./old' or 'binary:./old'?"),
            ("profile:", "'profile:' has no value"),
            ("tag:v1", "'tag' is unknown; write profile:NAME"),
            ("profile:a,profile:b", "'profile:' is given twice"),
            ("binary:a,", "a comma has nothing before or after it"),
        ] {
            let said = old_release(wrong).expect_err(wrong);
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn parts_are_counted_from_one_and_the_pods_of_a_job_from_zero() {
        let of = |text: &str, index| part(text, index).map(|share| share.to_string());
        assert_eq!(of("2/3", Some("0")), Ok("2/3".to_owned()));
        let all: Vec<_> = ["0", "1", "2"].into_iter().map(|index| of("job/3", Some(index))).collect();
        assert_eq!(all, ["1/3", "2/3", "3/3"].map(|part| Ok(part.to_owned())));
        for (text, index, why) in [
            ("job/3", None, "not a Pod of an Indexed Job"),
            ("job/3", Some("three"), "not a number"),
            ("job/3", Some("3"), "number of completions"),
            ("job/x", Some("0"), "number of completions"),
        ] {
            let said = of(text, index).expect_err("no part");
            assert!(said.contains(why), "{said}");
        }
    }
}
