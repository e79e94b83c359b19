//! The run file: what was written, every key optional. [`super::plan()`] says what it means.

use super::cluster::Kubernetes;
use super::duration::HumanDuration;
use super::problem::Problems;
use super::schema::{self, Key, Kind, Places, key};
use super::words::{BackendChoice, Budget, Keep, NodeIp, ProviderId, Timing};
use super::yaml;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A run file (`kind: Conformance`), or the same keys from the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunFile {
    /// `ccm-conformance/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// `Conformance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The CCM under test: the name of a built-in profile, or the path of a profile's folder or file.
    /// Default `reference`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The CCM's image, instead of the profile's. Default the profile's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A program of this machine that is the CCM, in place of the profile's image; only the embedded cluster runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// The cluster.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cluster: ClusterKeys,
    /// Which checks run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub select: SelectKeys,
    /// Where results go.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: OutputKeys,
    /// When the environment is left standing. Default `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Checks that run beside each other, 1 to 256. Default 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// How long checks wait.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: LimitKeys,
    /// Whether a partial result is a failed run. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_complete: Option<bool>,
    /// Which timing flags the CCM gets. Default `fast` for a CCM that accepts the flags, else `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// `cluster` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterKeys {
    /// Default `auto`: `kind` where Docker, kind and a node image are there, else `embedded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendChoice>,
    /// `single`, `three-node`, `no-cni`, `dual-stack`, another file of `kind-configs/` by name, or the path of a kind
    /// configuration. Default `three-node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// A version (`1.36`, `1.36.1`) or a node image. Default: the newest at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// Path of the kubeconfig of an existing cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// What kubelets write into `spec.providerID`. Default `empty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ProviderId>,
    /// Whether kubelets announce a node IP. Default `kept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ip: Option<NodeIp>,
}

/// `select` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectKeys {
    /// Suites to run, by name or with `*`. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suites: Option<Vec<String>>,
    /// Checks to run: ids, ids with `*`, or suite names. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// Checks to leave out, in the same forms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<Vec<String>>,
    /// Whether to leave out checks that take ten seconds or more. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick: Option<bool>,
}

/// `output` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputKeys {
    /// Folder for report and evidence. Default `conformance-results`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

/// `limits` of a run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitKeys {
    /// Factor on every budget, 0.1 to 20. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Exact values of single budgets, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<Budget, HumanDuration>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RunFile {
    /// What `kind` says in a run file.
    pub const KIND: &str = "Conformance";

    /// This file with `over` laid on top: what `over` says wins key by key, lists are replaced whole.
    #[must_use]
    pub fn merge(self, over: RunFile) -> RunFile {
        RunFile {
            api_version: over.api_version.or(self.api_version),
            kind: over.kind.or(self.kind),
            profile: over.profile.or(self.profile),
            image: over.image.or(self.image),
            binary: over.binary.or(self.binary),
            cluster: ClusterKeys {
                backend: over.cluster.backend.or(self.cluster.backend),
                topology: over.cluster.topology.or(self.cluster.topology),
                kubernetes: over.cluster.kubernetes.or(self.cluster.kubernetes),
                kubeconfig: over.cluster.kubeconfig.or(self.cluster.kubeconfig),
                provider_id: over.cluster.provider_id.or(self.cluster.provider_id),
                node_ip: over.cluster.node_ip.or(self.cluster.node_ip),
            },
            select: SelectKeys {
                suites: over.select.suites.or(self.select.suites),
                only: over.select.only.or(self.select.only),
                skip: over.select.skip.or(self.select.skip),
                quick: over.select.quick.or(self.select.quick),
            },
            output: OutputKeys { dir: over.output.dir.or(self.output.dir) },
            keep: over.keep.or(self.keep),
            jobs: over.jobs.or(self.jobs),
            limits: LimitKeys {
                scale: over.limits.scale.or(self.limits.scale),
                budgets: self.limits.budgets.into_iter().chain(over.limits.budgets).collect(),
            },
            require_complete: over.require_complete.or(self.require_complete),
            timing: over.timing.or(self.timing),
        }
    }

    /// Reads the text of a run file. Paths in it become relative to the file's folder. What is wrong goes to
    /// `problems`; what is sound is returned with its places all the same, so that later steps can find more.
    pub(crate) fn read(text: &str, file: &Path, problems: &mut Problems) -> (RunFile, Places) {
        let root = match yaml::tree(text, file) {
            Ok(root) => root,
            Err(error) => {
                problems.yaml(error);
                return (RunFile::default(), Places::default());
            }
        };
        let (sound, places) = schema::walk(&root, KEYS, Some(file), problems);
        schema::header(&sound, RunFile::KIND, &places, file, problems);
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
        relative(&mut run_file.binary);
        relative(&mut run_file.cluster.kubeconfig);
        relative(&mut run_file.output.dir);
        (run_file, places)
    }
}

/// Whether a text that may be a name or a path is a path: it has a slash, opens with a dot or ends like a YAML file.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with('.') || text.ends_with(".yaml") || text.ends_with(".yml")
}

/// The most checks that may run beside each other.
pub(crate) const JOBS_MOST: u64 = 256;
/// The least and the greatest factor on limits.
pub(crate) const SCALE_RANGE: (f64, f64) = (0.1, 20.0);

const TEXTS: Kind = Kind::List(&Kind::Text);

/// The keys of a run file.
pub(crate) const KEYS: &[Key] = &[
    key("apiVersion", &Kind::Text),
    key("kind", &Kind::Text),
    key("profile", &Kind::Text),
    key("image", &Kind::Form(super::profile_file::image_reference)),
    key("binary", &Kind::Text),
    key(
        "cluster",
        &Kind::Table(&[
            key("backend", &Kind::Word(BackendChoice::WORDS)),
            key("topology", &Kind::Text),
            key("kubernetes", &Kind::Form(kubernetes)),
            key("kubeconfig", &Kind::Text),
            key("providerId", &Kind::Word(ProviderId::WORDS)),
            key("nodeIp", &Kind::Word(NodeIp::WORDS)),
        ]),
    ),
    key(
        "select",
        &Kind::Table(&[
            key("suites", &TEXTS),
            key("only", &TEXTS),
            key("skip", &TEXTS),
            key("quick", &Kind::Switch),
        ]),
    ),
    key("output", &Kind::Table(&[key("dir", &Kind::Text)])),
    key("keep", &Kind::Word(Keep::WORDS)),
    key("jobs", &Kind::Whole(1, JOBS_MOST)),
    key(
        "limits",
        &Kind::Table(&[
            key("scale", &Kind::Factor(SCALE_RANGE.0, SCALE_RANGE.1)),
            key("budgets", &Kind::Free(budget_name, &Kind::Form(duration))),
        ]),
    ),
    key("requireComplete", &Kind::Switch),
    key("timing", &Kind::Word(Timing::WORDS)),
];

pub(crate) fn budget_name(word: &str) -> Result<(), String> {
    word.parse::<Budget>().map(|_| ()).map_err(|_| {
        let near = super::problem::did_you_mean(word, Budget::WORDS);
        if near.is_empty() {
            format!("no such budget; one of {}", Budget::WORDS.join(", "))
        } else {
            format!("no such budget{near}")
        }
    })
}

fn kubernetes(text: &str) -> Result<(), String> {
    text.parse::<Kubernetes>().map(|_| ())
}

/// Accepts what [`HumanDuration`] reads, except zero.
pub(crate) fn duration(text: &str) -> Result<(), String> {
    match text.parse::<HumanDuration>() {
        Ok(HumanDuration(value)) if value.is_zero() => Err(String::from("must be longer than zero")),
        Ok(_) => Ok(()),
        Err(why) => Err(why.to_string()),
    }
}
