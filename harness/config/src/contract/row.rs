//! Areas and rows, in the form of the tables.

use super::change::{Change, since_in_words};
use harness_core::check::{Capability, Level, Party};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One area of the contract: a table, and the common properties of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Area {
    /// The prefix of its rows' ids, e.g. `NODE-INIT`.
    pub area: String,
    /// A short title.
    pub title: String,
    /// Its position among the areas.
    pub order: u32,
    /// The party that its rows are about.
    pub promised_by: Party,
    /// The default owner of its rows.
    #[serde(default)]
    pub owner: Vec<Owner>,
    /// The capabilities that a CCM has to declare for the rows to apply, by default.
    #[serde(default)]
    pub gate: Vec<Capability>,
    /// Information about the whole area, in Markdown.
    pub about: String,
    /// Shell commands that come before the manual steps of each row.
    #[serde(default)]
    pub setup: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Area {
    /// The file name of its page.
    pub fn page(&self) -> String {
        format!("{}.md", self.area.to_ascii_lowercase())
    }
}

/// The code that decides a row, to which a failure points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The shared framework.
    Framework,
    /// The provider's code behind the cloud interface.
    Provider,
    /// The manifests.
    Manifest,
    /// Kubelet and control plane.
    Kubernetes,
    /// The harness.
    Harness,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Owner::Framework => "framework",
            Owner::Provider => "provider",
            Owner::Manifest => "manifest",
            Owner::Kubernetes => "Kubernetes",
            Owner::Harness => "harness",
        })
    }
}

/// The level of a row, in the words of RFC 2119, and `INFO` for rows that are recorded and never failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Obligation {
    /// Failing it makes the subject not conformant.
    #[serde(rename = "MUST")]
    Must,
    /// Doing it makes the subject not conformant.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// Failing it is reported.
    #[serde(rename = "SHOULD")]
    Should,
    /// Doing it is reported.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Both are allowed.
    #[serde(rename = "MAY")]
    May,
    /// A description of the shared framework.
    #[serde(rename = "INFO")]
    Info,
}

impl Obligation {
    /// The level of checks of such a row.
    pub fn level(self) -> Level {
        match self {
            Obligation::Must | Obligation::MustNot => Level::Must,
            Obligation::Should | Obligation::ShouldNot => Level::Should,
            Obligation::May | Obligation::Info => Level::Info,
        }
    }
}

impl fmt::Display for Obligation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Obligation::Must => "MUST",
            Obligation::MustNot => "MUST NOT",
            Obligation::Should => "SHOULD",
            Obligation::ShouldNot => "SHOULD NOT",
            Obligation::May => "MAY",
            Obligation::Info => "INFO",
        })
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Row {
    /// Its id, which never changes.
    pub id: String,
    /// Its level.
    pub level: Obligation,
    /// Its owner; empty if it is that of the area.
    #[serde(default)]
    pub owner: Vec<Owner>,
    /// The capabilities that a CCM has to declare for it to apply; absent if they are those of the area.
    #[serde(default)]
    pub gate: Option<Vec<Capability>>,
    /// Whether it is binding only for CCMs of the framework profile (the contract's dagger); for others it is
    /// one level softer.
    #[serde(default)]
    pub framework: bool,
    /// Whether it does not apply to a CCM that runs outside of the cluster that it manages.
    #[serde(default)]
    pub except_hosted: bool,
    /// The change of the framework from which it applies, by name. For CCMs of an older version it is only recorded, unless
    /// `before` says what is expected of them.
    #[serde(default)]
    pub since: Option<String>,
    /// What its check expects of CCMs of an older version; absent if nothing.
    #[serde(default)]
    pub before: Option<String>,
    /// The requirement.
    pub requires: String,
    /// The reason: the consequence for a cluster if it is not met.
    pub why: String,
    /// How the harness provokes the behaviour and what it examines.
    pub provoked: String,
    /// Shell commands with which a person can reproduce it.
    #[serde(default)]
    pub by_hand: Option<String>,
    /// How long the check waits or watches.
    pub bound: String,
    /// The source of the requirement.
    pub source: String,
    /// The claims of its checks.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Other rows whose checks judge it.
    #[serde(default)]
    pub judged_by: Vec<String>,
}

/// The claim of one check of a row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: the part after the dot in the check's id. Absent for the check with the row's own id.
    #[serde(default)]
    pub claim: Option<String>,
    /// Its level; absent if it is that of the row.
    #[serde(default)]
    pub level: Option<Obligation>,
    /// Whether it is binding only for CCMs of the framework profile, if it has its own level.
    #[serde(default)]
    pub framework: bool,
    /// The change of the framework from which it applies, by name; absent if it is that of the row.
    #[serde(default)]
    pub since: Option<String>,
    /// What its check expects of CCMs of an older version, if `since` is its own; absent if nothing.
    #[serde(default)]
    pub before: Option<String>,
    /// The requirement in the present tense: the check's title in lists and reports.
    pub requires: String,
    /// The source of the requirement; absent if it is that of the row.
    #[serde(default)]
    pub source: Option<String>,
}

impl Claim {
    /// The id of its check.
    pub fn check(&self, row: &Row) -> String {
        self.claim.as_ref().map_or_else(|| row.id.clone(), |name| format!("{}.{name}", row.id))
    }
}

impl Row {
    /// The owner of the row.
    pub fn owners<'a>(&'a self, area: &'a Area) -> &'a [Owner] {
        if self.owner.is_empty() { &area.owner } else { &self.owner }
    }

    /// The capabilities that a CCM has to declare for the row to apply.
    pub fn gates<'a>(&'a self, area: &'a Area) -> &'a [Capability] {
        self.gate.as_deref().unwrap_or(&area.gate)
    }

    /// The level as text; `changes` are those of the contract.
    pub fn level_in_words(&self, changes: &[Change]) -> String {
        let mut words = match (self.framework, self.level.level()) {
            (false, _) => self.level.to_string(),
            (true, level) => format!(
                "{} for CCMs of the framework profile, {} for others",
                self.level,
                if level == Level::Must { "SHOULD" } else { "INFO" }
            ),
        };
        if let Some(since) = &self.since {
            words.push_str(&format!(", {}", since_in_words(changes, since)));
        }
        words
    }
}
