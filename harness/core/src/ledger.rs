//! What a run found: one entry per check, and the facts about what was tested.
//!
//! Pure data, serialisable so that several processes (nextest) can write into one run.

mod setting;
mod share;

pub use setting::{Bearing, SetBy, Setting};
pub use share::Share;

use crate::check::{Isolation, Level, row_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Message of [`Outcome::Error`] of a check that was not judged to its end because somebody ended the run.
pub const INTERRUPTED: &str = "interrupted";

/// The fact by which an entry tells that its check was judged twice, and why.
pub const FIRST_TRY: &str = "first-try";

/// How one check ended. Every selected id ends in exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The claim held.
    Pass,
    /// The CCM broke it.
    Fail {
        /// Promise, expected, last seen, waited: the text shown to a person.
        message: String,
    },
    /// The CCM broke another promise, without which this one could not be judged.
    Blocked {
        /// Id of the check that is about that promise.
        by: String,
        /// What was seen of it.
        message: String,
    },
    /// Not judged, and why.
    Skip {
        /// Which kind of reason.
        reason: SkipReason,
        /// The reason in words.
        detail: String,
    },
    /// The environment failed; says nothing of the CCM.
    Error {
        /// What failed and the way out.
        message: String,
    },
}

/// Why a check was not judged; counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The profile does not declare the capability: no effect on the verdict.
    NotDeclared,
    /// This backend, Kubernetes version or cloud cannot show it: the result is at most partial.
    NotObservable,
    /// The user left it out: the result is at most partial.
    Deselected,
}

/// One check's line in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Contract id.
    pub id: String,
    /// Suite name.
    pub suite: String,
    /// The claim.
    pub title: String,
    /// Level as it binds this CCM (after the framework profile was taken into account).
    pub level: Level,
    /// How it ran beside others.
    pub sharing: Isolation,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Wall time of the body, milliseconds; 0 when it did not run.
    pub duration_ms: u64,
    /// The longest share of a wait's limit that was used, in percent; `None` when nothing was waited for.
    pub budget_used_percent: Option<u32>,
    /// Evidence folder relative to the report, when any was taken.
    pub evidence: Option<String>,
    /// When it started, RFC 3339; empty when it did not run.
    #[serde(default)]
    pub started: String,
    /// Facts the check recorded, by name (INFO rows, measured times).
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

impl Entry {
    /// An entry of which only this matters: for tests, of other crates too.
    pub fn sample(id: &str, level: Level, outcome: Outcome) -> Entry {
        Entry {
            id: id.to_owned(),
            suite: "suite".to_owned(),
            title: "claim".to_owned(),
            level,
            sharing: Isolation::Shared,
            outcome,
            duration_ms: 1,
            budget_used_percent: None,
            evidence: None,
            started: String::new(),
            facts: BTreeMap::new(),
        }
    }
}

impl Entry {
    /// Whether it keeps a result from being complete: a MUST that applies and was not judged, or a check of any level that
    /// the user left out.
    pub fn is_unjudged(&self) -> bool {
        match &self.outcome {
            Outcome::Pass | Outcome::Fail { .. } | Outcome::Skip { reason: SkipReason::NotDeclared, .. } => {
                false
            }
            Outcome::Skip { reason: SkipReason::Deselected, .. } => true,
            Outcome::Skip { reason: SkipReason::NotObservable, .. }
            | Outcome::Blocked { .. }
            | Outcome::Error { .. } => self.level == Level::Must,
        }
    }
}

/// What was tested, where and with what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// Profile name.
    pub profile: String,
    /// CCM image reference; empty for the null profile.
    pub image: String,
    /// CCM image digest.
    pub image_digest: String,
    /// SHA-256 over the rendered manifests.
    pub manifests_sha256: String,
    /// Framework version the profile declares.
    pub framework_version: Option<String>,
    /// Declared capabilities.
    pub capabilities: Vec<String>,
    /// Keys of the profile that promise what no check judges: the result is at most partial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared_not_judged: Vec<String>,
    /// Fake cloud's dialect; empty where another cloud is driven.
    pub dialect: String,
    /// By whose eyes the cloud was seen: the driver's name and its facilities, where that is not the fake cloud.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// Cluster backend, e.g. `kind`.
    pub backend: String,
    /// Whether the cluster was a simulation, which certifies nothing. The backend states it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Topology name.
    pub topology: String,
    /// Version the API server reports.
    pub kubernetes_version: String,
    /// Version the kind binary reports.
    pub kind_version: String,
    /// Node image reference and digest.
    pub node_image: String,
    /// Digest of the node image.
    pub node_image_digest: String,
    /// Harness version.
    pub harness_version: String,
    /// Identifies the set of checks: SHA-256 over ids, levels and titles, first 12 digits.
    pub check_set: String,
    /// Whether it was a run for certification, which refuses whatever makes a result partial from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub certify: bool,
    /// With what the run was made: limits, selection, timing, changes of the CCM's manifests, each with who set it.
    pub settings: Vec<Setting>,
    /// Deviations the vendor documents: check id and reason. Shown beside the outcome, without effect on it.
    #[serde(default)]
    pub declared: BTreeMap<String, String>,
    /// Command that reproduces the run.
    pub reproduce: String,
    /// Which part of a run it is, where it is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardOf>,
    /// The shards that it was merged from, where it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedShard>,
}

/// One part of a run that several machines share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShardOf {
    /// Which of how many, e.g. `1/3`.
    pub share: Share,
    /// The run's name, where it was given one: parts of other runs are not merged with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A shard that went into a merged report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedShard {
    /// Which of how many.
    pub share: Share,
    /// When it began, RFC 3339.
    pub started: String,
    /// The stream that it was read from.
    pub stream: Stream,
    /// Command that reproduces it.
    pub reproduce: String,
}

impl Subject {
    /// The reason of the deviation that names a check, or the contract row it is a claim of.
    pub fn deviation(&self, check: &str) -> Option<&str> {
        let named = self.declared.get(check).or_else(|| self.declared.get(row_of(check)));
        named.map(String::as_str)
    }

    /// What asks less of the CCM than the contract does.
    pub fn relaxed(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|setting| setting.relaxes())
    }
}

/// The stream of events that a ledger was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// How many events it has, up to the one that ends the run.
    pub events: u64,
    /// SHA-256 over their lines in `events.jsonl`, in hexadecimal digits.
    pub sha256: String,
}

/// How long a stage took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTime {
    /// Stage name, e.g. `cluster`.
    pub stage: String,
    /// Milliseconds.
    pub took_ms: u64,
}

/// Everything a run found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// What was tested.
    pub subject: Subject,
    /// When the run began, RFC 3339.
    pub started: String,
    /// Wall time of the run, milliseconds.
    pub duration_ms: u64,
    /// Stages in order.
    pub stages: Vec<StageTime>,
    /// One entry per check of the contract that is known, sorted by suite order and id.
    pub entries: Vec<Entry>,
    /// One entry per private check: a vendor's own, which the contract does not have. They have no effect on the verdict, on the
    /// counts, or on whether a report can be verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<Entry>,
    /// What explains more than one failure, one sentence each, the weightiest first.
    #[serde(default)]
    pub explanations: Vec<String>,
    /// An error that kept the environment from coming up, if any.
    pub environment_error: Option<String>,
    /// The stream it was made of; `None` where that lacks its end.
    pub stream: Option<Stream>,
}

/// The verdict over a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conformance {
    /// Every MUST that applies passed.
    Conformant,
    /// None failed, but some were not judged.
    Partial,
    /// A MUST failed.
    NotConformant,
    /// The environment failed before anything could be said.
    NotJudged,
}

impl Ledger {
    /// The entries of all checks, those of the contract first.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.private)
    }

    /// The verdict over the checks of the contract: a failed MUST decides, and so does a MUST that was blocked, since then the CCM broke the promise that
    /// blocked it; else anything of level MUST not judged makes it partial, and so does a check of any level that was left
    /// out, a declaration that no check judges, a setting looser than the contract, and a simulated cluster;
    /// an environment with no judged MUST at all is not judged.
    pub fn conformance(&self) -> Conformance {
        let musts = || self.entries.iter().filter(|e| e.level == Level::Must);
        if musts().any(|e| matches!(e.outcome, Outcome::Fail { .. } | Outcome::Blocked { .. })) {
            return Conformance::NotConformant;
        }
        if self.environment_error.is_some() || !musts().any(|e| matches!(e.outcome, Outcome::Pass)) {
            return Conformance::NotJudged;
        }
        let unjudged =
            self.entries.iter().any(Entry::is_unjudged) || !self.subject.declared_not_judged.is_empty();
        if unjudged || self.subject.simulated || self.subject.relaxed().next().is_some() {
            Conformance::Partial
        } else {
            Conformance::Conformant
        }
    }
}
