//! What was typed after `run` and `plan`.

use clap::Args;
use harness_config::{
    BackendChoice, ClusterKeys, HumanDuration, Keep, NodeIp, OutputKeys, ProviderId, RunFile, SelectKeys,
    Source, Timing,
};
use harness_core::ledger::Share;
use std::path::PathBuf;
use std::str::FromStr;

/// In which the Pods of an Indexed Job have their completion index, from 0.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// A part as it was typed.
fn shard(text: &str) -> Result<Share, String> {
    part(text, std::env::var(INDEX).ok().as_deref())
}

/// A part as it was typed, in a Pod of that completion index.
fn part(text: &str, index: Option<&str>) -> Result<Share, String> {
    let Some(count) = text.strip_prefix("job/") else { return Share::from_str(text) };
    let index =
        index.ok_or_else(|| format!("{INDEX} is not set: this is not a Pod of an Indexed Job; write K/N"))?;
    let index: usize = index.parse().map_err(|_| format!("{INDEX} is '{index}', and no number"))?;
    let share = Share::from_str(&format!("{}/{count}", index.saturating_add(1)));
    share.map_err(|why| format!("completion index {index}: {why}; N is the Job's number of completions"))
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunOptions {
    /// Run file; options given here win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Profile of the CCM: a built-in name or a path.
    #[arg(long, value_name = "NAME|PATH")]
    profile: Option<String>,
    /// The CCM's image, instead of the profile's.
    #[arg(long, value_name = "REFERENCE")]
    image: Option<String>,
    /// The CCM as a program of this machine, instead of an image; only the embedded cluster runs it. Or the plugin of a profile of
    /// image credentials
    #[arg(long, value_name = "PATH", conflicts_with = "image")]
    binary: Option<String>,
    /// Where the checks run: on a kind cluster (real kubelets), in this process without Docker, or on an existing
    /// cluster; 'auto', the default, takes kind where Docker, kind and a node image are there, else embedded. Without it
    /// the environment's CCM_CONFORMANCE_CLUSTER is asked.
    #[arg(long, value_name = "auto|kind|embedded|existing", value_parser = BackendChoice::from_str)]
    cluster: Option<BackendChoice>,
    /// Topology of the cluster: single, three-node, no-cni, dual-stack or a kind configuration file.
    #[arg(long, value_name = "NAME|PATH")]
    topology: Option<String>,
    /// Kubernetes by its version, or by the node image's name; without it the newest at hand.
    #[arg(long, value_name = "VERSION|IMAGE")]
    kubernetes: Option<String>,
    /// The existing cluster's kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// Take an existing cluster that looks as if somebody needs it, with Services of type LoadBalancer or Nodes of another
    /// provider: all of it may be lost.
    #[arg(long)]
    allow_foreign_cluster: bool,
    /// Whether kubelets register with an empty providerID or with one chosen in the profile's format.
    #[arg(long, value_name = "empty|chosen", value_parser = ProviderId::from_str)]
    provider_id: Option<ProviderId>,
    /// Whether kubelets keep the --node-ip that kind gives them.
    #[arg(long, value_name = "kept|dropped", value_parser = NodeIp::from_str)]
    node_ip: Option<NodeIp>,
    /// What decides at which moments the controllers of an embedded cluster look round, and what happens in a soak; a report
    /// names that of its run.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// Only these suites; several with commas, or repeated.
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    suite: Vec<String>,
    /// Only these checks, by id or pattern with *; several with commas, or repeated.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Without these checks, by id or pattern with *; several with commas, or repeated.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    skip: Vec<String>,
    /// Only the checks that failed, were blocked or met an environment error in this report.
    #[arg(long, value_name = "REPORT", conflicts_with = "only")]
    pub(crate) failed_from: Option<PathBuf>,
    /// Without checks that take five seconds or more when they pass: an answer while you work, not a verdict.
    #[arg(long)]
    quick: bool,
    /// Only the Kth of N parts of the checks, so that machines can share a run; 'merge' makes one report of all parts. In a Pod
    /// of an Indexed Job 'job/N' is the part that its completion index stands for.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Share>,
    /// For how long Nodes, Services, the cloud and leaders are disturbed at random, and an idle CCM is watched, beside the
    /// other checks; --seed decides what happens.
    #[arg(long, value_name = "DURATION", value_parser = HumanDuration::from_str)]
    soak: Option<HumanDuration>,
    /// The name of the run that the part is of, such as the number that a CI gives it; 'merge' refuses parts of another.
    #[arg(long, value_name = "NAME", requires = "shard")]
    shard_of: Option<String>,
    /// Whether the environment stays after the run.
    #[arg(long, value_name = "never|on-failure|always", value_parser = Keep::from_str)]
    keep: Option<Keep>,
    /// Folder for report.html, report.yaml, junit.xml and evidence.
    #[arg(long, value_name = "DIR")]
    out: Option<String>,
    /// Run as a plugin of Sonobuoy, which shares this folder with it: the results are written there, then their archive and
    /// the file 'done' that names it, however the run ends.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "repeat", "watch"])]
    pub(crate) sonobuoy_results: Option<PathBuf>,
    /// How many checks run side by side on each cluster.
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// How many clusters the checks are spread among, each with a cloud and a CCM of its own.
    #[arg(long, value_name = "N")]
    clusters: Option<u32>,
    /// Pace of leader election: the speed-up flags, or the CCM's own defaults.
    #[arg(long, value_name = "fast|default", value_parser = Timing::from_str)]
    timing: Option<Timing>,
    /// A partial result is exit code 1.
    #[arg(long)]
    require_complete: bool,
    /// Certify: what would make the result partial is refused from the start, and a partial result is exit code 1.
    #[arg(long)]
    certify: bool,
    /// Show the run's page in a browser of this machine while it goes: prints the page's address, which nobody else can
    /// guess, and ends with the run.
    #[arg(long, conflicts_with = "repeat")]
    pub(crate) watch: bool,
    /// Run so many times, each on a fresh environment and with its results in run-1, run-2, ... of the output folder; then
    /// say which checks did not end the same. The exit code is the worst.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,
}

impl RunOptions {
    /// Where the run file is, if any.
    pub(crate) fn source(&self) -> Source {
        self.config.clone().map_or(Source::Defaults, Source::File)
    }

    /// What was typed, in the run file's form.
    pub(crate) fn overrides(&self) -> RunFile {
        let some = |list: &[String]| (!list.is_empty()).then(|| list.to_vec());
        RunFile {
            profile: self.profile.clone(),
            image: self.image.clone(),
            binary: self.binary.clone(),
            cluster: ClusterKeys {
                backend: self.cluster,
                topology: self.topology.clone(),
                kubernetes: self.kubernetes.clone(),
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
    use super::part;

    #[test]
    fn parts_are_counted_from_one_and_the_pods_of_a_job_from_zero() {
        let of = |text: &str, index| part(text, index).map(|share| share.to_string());
        assert_eq!(of("2/3", Some("0")), Ok("2/3".to_owned()));
        let all: Vec<_> = ["0", "1", "2"].into_iter().map(|index| of("job/3", Some(index))).collect();
        assert_eq!(all, ["1/3", "2/3", "3/3"].map(|part| Ok(part.to_owned())));
        for (text, index, why) in [
            ("job/3", None, "no Pod of an Indexed Job"),
            ("job/3", Some("three"), "no number"),
            ("job/3", Some("3"), "number of completions"),
            ("job/x", Some("0"), "number of completions"),
        ] {
            let said = of(text, index).expect_err("no part");
            assert!(said.contains(why), "{said}");
        }
    }
}
