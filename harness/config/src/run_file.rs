//! The keys of a run file, all optional. [`super::plan()`] converts them to their meaning.

use super::duration::HumanDuration;
use super::enums::{API_VERSION, BackendChoice, Budget, Keep, NodeIp, ProviderId, Timing};
use super::formats::{ImageReference, KubernetesText, Name, ShareText, Span};
use super::old_release::UpgradeKeys;
use super::paths::looks_like_path;
use super::problem::Problems;
use super::profile::REFERENCE_PROFILE;
use super::schema::{self, Keyed, ordered};
use super::schema_check::{Places, walk};
use super::yaml;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The schema of a run file.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of_file::<RunFile>);

/// A run of the conformance checks: what is tested, where, and with which limits. Options on the command line override
/// these keys. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>, extend("required" = ["apiVersion", "kind"]))]
pub struct RunFile {
    /// Version of this format.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: Option<String>,
    /// What this file is.
    #[schemars(extend("const" = "Conformance"))]
    pub kind: Option<String>,
    /// The CCM under test: the name of a built-in profile, or the path of a profile folder or file.
    #[schemars(extend("default" = DEFAULT_PROFILE), example = &"./my-ccm")]
    pub profile: Option<String>,
    /// The image of the CCM, instead of the one in the profile.
    #[schemars(with = "Option<ImageReference>", extend("x-default" = "the profile's"))]
    #[schemars(example = &"registry.example/acme-ccm:v1.2.4")]
    pub image: Option<String>,
    /// A program on this machine that is the CCM, instead of the image in the profile; only the embedded cluster runs
    /// it. For a profile of `kind: image-credentials`, it is the plugin.
    #[schemars(example = &"./ccm")]
    pub binary: Option<String>,
    /// The release that is installed first, so that the suite `upgrade` can judge how the CCM under test replaces it.
    pub upgrade_from: UpgradeKeys,
    /// The cluster.
    pub cluster: ClusterKeys,
    /// Which checks run.
    pub select: SelectKeys,
    /// Where results are written.
    pub output: OutputKeys,
    /// When the environment is kept after the run.
    #[schemars(extend("default" = DEFAULT_KEEP))]
    pub keep: Option<Keep>,
    /// The number of checks that run side by side on one cluster; most of them only wait. With 1 they run one after
    /// another, on one cluster unless `clusters` is set. By default fewer if the CCM has few workers: 8 for each.
    #[schemars(range(min = 1, max = 256), extend("default" = DEFAULT_JOBS))]
    pub jobs: Option<u32>,
    /// The number of clusters side by side, each with its own cloud and CCM. The checks are spread among them. There
    /// are never more than the checks can use.
    #[schemars(range(min = 1, max = 16))]
    #[schemars(extend("x-default" = "`12` embedded ones, as many of kind as cores, memory and disk allow, `1` existing one"))]
    pub clusters: Option<u32>,
    /// The duration of the soak checks `HA-08.soak`, `HA-10.soak` and `SCALE-03.soak`, which disturb Nodes, Services,
    /// the cloud and leaders at random, and watch an idle CCM, next to the other checks. `cluster.seed` determines what
    /// happens.
    #[schemars(with = "Option<Span>", example = &"30m", extend("x-default" = "not at all"))]
    pub soak: Option<HumanDuration>,
    /// How long checks wait.
    pub limits: LimitKeys,
    /// Whether a partial result fails the run (exit code 1).
    #[schemars(extend("x-default" = "`true` with `certify`, otherwise `false`"))]
    pub require_complete: Option<bool>,
    /// Whether the run certifies. It refuses limits looser than the contract, omitted checks, a simulated cluster and
    /// declared capabilities that no check judges, before anything is started.
    #[schemars(extend("default" = false))]
    pub certify: Option<bool>,
    /// Which timing flags the CCM gets.
    #[schemars(extend("x-default" = "`fast` for a CCM that accepts the flags, otherwise `default`"))]
    pub timing: Option<Timing>,
}

/// `cluster` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct ClusterKeys {
    /// Where the cluster comes from.
    #[schemars(extend("default" = DEFAULT_BACKEND))]
    pub backend: Option<BackendChoice>,
    /// `single`, `two-node`, `three-node`, `no-cni`, `dual-stack`, another file of `kind-configs/` by name, or the path of a
    /// kind configuration.
    #[schemars(extend("default" = DEFAULT_TOPOLOGY))]
    pub topology: Option<String>,
    /// A Kubernetes version (`1.36`, `1.36.1`) or a node image.
    #[schemars(with = "Option<KubernetesText>", example = &"1.36", extend("x-default" = "the newest available"))]
    pub kubernetes: Option<String>,
    /// Path of the kubeconfig of an existing cluster.
    #[schemars(extend("x-default" = "the one kubectl would use"))]
    pub kubeconfig: Option<String>,
    /// Whether to accept an existing cluster that appears to be in use: one with Services of type LoadBalancer, or with
    /// Nodes of another provider.
    #[schemars(extend("default" = false))]
    pub allow_foreign: Option<bool>,
    /// What kubelets write into `spec.providerID`.
    #[schemars(extend("default" = DEFAULT_PROVIDER_ID))]
    pub provider_id: Option<ProviderId>,
    /// Whether kubelets announce a node IP.
    #[schemars(extend("default" = DEFAULT_NODE_IP))]
    pub node_ip: Option<NodeIp>,
    /// Determines when the controllers of an embedded cluster act, and what happens in a soak. The seed in a report
    /// repeats those of its run.
    #[schemars(example = &7, extend("x-default" = "random"))]
    pub seed: Option<u32>,
}

/// `select` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct SelectKeys {
    /// Suites to run, by name or with `*`.
    #[schemars(example = ["taint-removal"], extend("x-default" = "all"))]
    pub suites: Option<Vec<String>>,
    /// Checks to run: ids, ids with `*`, or suite names.
    #[schemars(example = ["SVC-*"], extend("x-default" = "all"))]
    pub only: Option<Vec<String>>,
    /// Checks to leave out, in the same forms.
    #[schemars(example = ["HA-*"], extend("x-default" = "none"))]
    pub skip: Option<Vec<String>>,
    /// Whether to leave out checks that take five seconds or more. Has no effect together with `only`.
    #[schemars(extend("default" = false))]
    pub quick: Option<bool>,
    /// Only this part of the checks, so that machines can share a run. Claims of one row, and checks that watch the
    /// same event, stay together. `merge` combines the parts into one report.
    #[schemars(with = "Option<ShareText>", example = &"1/3", extend("x-default" = "all"))]
    pub shard: Option<String>,
    /// The name of the run that the part belongs to, such as the number of a CI run. `merge` refuses parts of another
    /// run.
    #[schemars(with = "Option<Name>", extend("x-default" = "none"))]
    pub run: Option<String>,
}

/// `output` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct OutputKeys {
    /// Folder for report and evidence.
    #[schemars(extend("default" = DEFAULT_OUTPUT))]
    pub dir: Option<String>,
}

/// `limits` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct LimitKeys {
    /// Factor for every budget.
    #[schemars(range(min = 0.1, max = 20), extend("default" = 1))]
    pub scale: Option<f64>,
    /// Exact values of single budgets, by name.
    #[schemars(with = "Keyed<Budget, Span>", example = BTreeMap::from([("watch", "20s")]))]
    pub budgets: BTreeMap<Budget, HumanDuration>,
}

/// The default profile: the CCM that must pass everything.
pub(crate) const DEFAULT_PROFILE: &str = REFERENCE_PROFILE;
/// The default for when the environment is kept.
pub(crate) const DEFAULT_KEEP: Keep = Keep::Never;
/// The default number of checks that run at the same time on one cluster, for a CCM with enough workers.
pub(crate) const DEFAULT_JOBS: u32 = 32;
/// How many checks each worker of a CCM can serve within the contract's bounds, at the framework's usual rate
/// of API calls.
const JOBS_OF_A_WORKER: u32 = 8;

/// The default number of checks that run at the same time on one cluster.
pub(crate) fn usual_jobs(workers: u32) -> u32 {
    workers.saturating_mul(JOBS_OF_A_WORKER).min(DEFAULT_JOBS)
}
/// The default backend.
pub(crate) const DEFAULT_BACKEND: BackendChoice = BackendChoice::Auto;
/// The default topology: one node starts fastest, and the replicas share it.
pub(crate) const DEFAULT_TOPOLOGY: &str = "single";
/// The default for the `spec.providerID` that kubelets set.
pub(crate) const DEFAULT_PROVIDER_ID: ProviderId = ProviderId::Empty;
/// The default for whether kubelets announce a node IP.
pub(crate) const DEFAULT_NODE_IP: NodeIp = NodeIp::Kept;
/// The default folder for results.
pub(crate) const DEFAULT_OUTPUT: &str = "conformance-results";

impl RunFile {
    /// Merges `over` into this file: its keys override this file's, and lists are replaced as a whole.
    #[must_use]
    pub fn merge(self, over: RunFile) -> RunFile {
        let mut written = self.said();
        lay_over(&mut written, over.said());
        serde_json::from_value(Value::Object(written)).expect("two run files have the keys of one")
    }

    /// The keys that the file has.
    pub(crate) fn said(&self) -> Map<String, Value> {
        let mut value = serde_json::to_value(self).expect("a run file is plain data");
        drop_unsaid(&mut value);
        value.as_object().cloned().unwrap_or_default()
    }

    /// Reads the text of a run file. Paths in it become relative to the file's folder. Faults are reported to
    /// `problems`; the valid part is still returned with its places, so that later steps can find more
    /// faults.
    pub(crate) fn read(text: &str, file: &Path, problems: &mut Problems) -> (RunFile, Places) {
        let root = match yaml::tree(text, file) {
            Ok(root) => root,
            Err(error) => {
                problems.yaml(error);
                return (RunFile::default(), Places::default());
            }
        };
        let (sound, places) = walk(&root, &SCHEMA, Some(file), problems);
        let mut run_file: RunFile = problems.typed(sound, file);
        let folder = file.parent().unwrap_or(Path::new(""));
        let relative = |text: &mut Option<String>| {
            if let Some(text) = text.as_mut() {
                *text = folder.join(&*text).to_string_lossy().into_owned();
            }
        };
        if run_file.profile.as_deref().is_some_and(looks_like_path) {
            relative(&mut run_file.profile);
        }
        if run_file.cluster.topology.as_deref().is_some_and(looks_like_path) {
            relative(&mut run_file.cluster.topology);
        }
        if run_file.upgrade_from.profile.as_deref().is_some_and(looks_like_path) {
            relative(&mut run_file.upgrade_from.profile);
        }
        relative(&mut run_file.upgrade_from.binary);
        relative(&mut run_file.binary);
        relative(&mut run_file.cluster.kubeconfig);
        relative(&mut run_file.output.dir);
        (run_file, places)
    }
}

fn drop_unsaid(value: &mut Value) {
    if let Value::Object(map) = value {
        map.values_mut().for_each(drop_unsaid);
        map.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|inner| !inner.is_empty()));
    }
}

fn lay_over(below: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(over)) => lay_over(below, over),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}
