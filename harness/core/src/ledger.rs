//! The results of a run: one entry per check, and the description of what was tested.
//!
//! Pure data, serialisable so that several processes (nextest) can contribute to one run.

mod setting;
mod share;

pub use setting::{ContractComparison, SetBy, Setting, option_of, upgrades_from};
pub use share::Share;

use crate::check::{Isolation, Level, row_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Message of [`Outcome::Error`] of a check that was not finished because the user ended the run.
pub const INTERRUPTED: &str = "interrupted";

/// The fact in an entry that its check was judged twice, and why.
pub const FIRST_TRY: &str = "first-try";

/// The outcome of a check. Every selected check has exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The claim held.
    Pass,
    /// The CCM violated it.
    Fail {
        /// Claim, expected, last seen, waited: the text for the user.
        message: String,
    },
    /// The CCM violated another claim, without which this one could not be judged.
    Blocked {
        /// Id of the check that judges that claim.
        by: String,
        /// What was observed of it.
        message: String,
    },
    /// Not judged, and why.
    Skip {
        /// The kind of reason.
        reason: SkipReason,
        /// The reason as text.
        detail: String,
    },
    /// The environment failed, so there is no result about the CCM.
    Error {
        /// What failed, and a remedy.
        message: String,
    },
}

/// Why a check was not judged; each kind is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// The profile does not declare the capability: no effect on the verdict.
    NotDeclared,
    /// This backend, Kubernetes version or cloud cannot show it: the result is at most partial.
    NotObservable,
    /// The user deselected it: the result is at most partial.
    Deselected,
}

/// The entry of one check in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Contract id.
    pub id: String,
    /// Suite name.
    pub suite: String,
    /// The claim.
    pub title: String,
    /// The level that applies to this CCM (after the framework profile was taken into account).
    pub level: Level,
    /// How it shared its cluster with others.
    pub sharing: Isolation,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Wall time of the body, milliseconds; 0 when it did not run.
    pub duration_ms: u64,
    /// The largest fraction of a wait's limit that was used, in percent; `None` if it did not wait.
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
    /// An entry for tests of this and other crates, in which only these values matter.
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
    /// Whether it prevents a complete result: a MUST that applies and was not judged, or a check of any level that the
    /// user deselected.
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

/// The subject of a run: what was tested, and with what environment and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// Profile name.
    pub profile: String,
    /// What was tested: the image of the CCM, or its program, as the user named it; empty for the null profile.
    pub image: String,
    /// Digest of the image or program.
    pub image_digest: String,
    /// SHA-256 over the rendered manifests.
    pub manifests_sha256: String,
    /// Framework version the profile declares.
    pub framework_version: Option<String>,
    /// Declared capabilities.
    pub capabilities: Vec<String>,
    /// Keys of the profile that declare something that no check judges: the result is at most partial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared_not_judged: Vec<String>,
    /// The fake cloud's dialect; empty for other clouds.
    pub dialect: String,
    /// The driver of the cloud: its name and facilities, if it is not the fake cloud's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// Cluster backend, e.g. `kind`.
    pub backend: String,
    /// Whether the cluster was a simulation, which cannot certify. The backend states this.
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
    /// Whether it was a run for certification, which refuses to start if the result could only be partial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub certify: bool,
    /// The settings of the run: limits, selection, timing, changes of the CCM's manifests, each with who set it.
    pub settings: Vec<Setting>,
    /// Deviations that the vendor documents: check id and reason. Shown with the outcome, without effect on it.
    #[serde(default)]
    pub declared: BTreeMap<String, String>,
    /// Command that reproduces the run.
    pub reproduce: String,
    /// Which part of a run it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardOf>,
    /// The shards from which it was merged, if it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedShard>,
}

/// One part of a run that is divided between machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShardOf {
    /// Its share, e.g. `1/3`.
    pub share: Share,
    /// The name of the run, if it has one: parts of other runs are not merged with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A shard that went into a merged report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergedShard {
    /// Its share.
    pub share: Share,
    /// When it began, RFC 3339.
    pub started: String,
    /// The stream from which it was read.
    pub stream: Stream,
    /// Command that reproduces it.
    pub reproduce: String,
}

impl Subject {
    /// The reason of the deviation for a check, or for its contract row.
    pub fn deviation(&self, check: &str) -> Option<&str> {
        let named = self.declared.get(check).or_else(|| self.declared.get(row_of(check)));
        named.map(String::as_str)
    }

    /// The settings that are less strict than the contract.
    pub fn relaxed(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(|setting| setting.relaxes())
    }
}

/// The stream of events from which a ledger was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The number of its events, up to the one that ends the run.
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

/// All results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The subject.
    pub subject: Subject,
    /// When the run began, RFC 3339.
    pub started: String,
    /// Wall time of the run, milliseconds.
    pub duration_ms: u64,
    /// Stages in order.
    pub stages: Vec<StageTime>,
    /// One entry per known check of the contract, sorted by suite order and id.
    pub entries: Vec<Entry>,
    /// One entry per private check: a vendor's own, which is not part of the contract. They have no effect on the
    /// verdict, on the counts, or on whether a report can be verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<Entry>,
    /// Explanations for more than one failure, one sentence each, the most important first.
    #[serde(default)]
    pub explanations: Vec<String>,
    /// The error that prevented the creation of the environment, if any.
    pub environment_error: Option<String>,
    /// The stream from which it was made; `None` if that lacks its end.
    pub stream: Option<Stream>,
}

/// The verdict on a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conformance {
    /// Every MUST that applies passed.
    Conformant,
    /// None failed, but some were not judged.
    Partial,
    /// A MUST failed.
    NotConformant,
    /// The environment failed before anything could be judged.
    NotJudged,
}

impl Ledger {
    /// The entries of all checks, those of the contract first.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.private)
    }

    /// Whether the user ended the run before all of its checks were judged.
    pub fn is_interrupted(&self) -> bool {
        self.all().any(|entry| matches!(&entry.outcome, Outcome::Error { message } if message == INTERRUPTED))
    }

    /// The verdict over the checks of the contract. A failed MUST makes it not conformant, and so does a blocked MUST, as
    /// the CCM then violated the claim that blocked it. Otherwise it is partial if a MUST was not judged, a check of any
    /// level was deselected, a declaration is judged by no check, a setting is less strict than the contract, or the
    /// cluster was simulated. An environment in which no MUST was judged has no verdict.
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
