//! Areas and rows as the tables hold them.

use harness_core::check::{Capability, Level, Party};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One area of the contract: a table, and what its rows have in common.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Area {
    /// The beginning of its rows' ids, e.g. `NODE-INIT`.
    pub area: String,
    /// What it is about, in a few words.
    pub title: String,
    /// Its place among the areas.
    pub order: u32,
    /// Whose promises its rows are.
    pub promised_by: Party,
    /// Whose code decides its rows, where a row does not say otherwise.
    #[serde(default)]
    pub owner: Vec<Owner>,
    /// What a CCM has to declare for the rows to apply, where a row does not say otherwise.
    #[serde(default)]
    pub gate: Vec<Capability>,
    /// What a reader has to know of the whole area, in Markdown.
    pub about: String,
    /// What the steps by hand of its rows begin with, for a shell.
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

/// Whose code decides a row, and so where a failure points to.
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

/// How binding a row is, in the words of RFC 2119, and `INFO` for what is told and never failed.
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
    /// Both are right.
    #[serde(rename = "MAY")]
    May,
    /// What the shared framework does.
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
    /// Its id, stable for ever.
    pub id: String,
    /// How binding it is.
    pub level: Obligation,
    /// Whose code decides it; nothing where it is the area's.
    #[serde(default)]
    pub owner: Vec<Owner>,
    /// What a CCM has to declare for it to apply; absent where it is the area's.
    #[serde(default)]
    pub gate: Option<Vec<Capability>>,
    /// Whether it binds CCMs of the framework profile only (the contract's dagger): for others it is one level softer.
    #[serde(default)]
    pub framework: bool,
    /// Whether it does not apply to a CCM that runs outside of the cluster that it manages.
    #[serde(default)]
    pub except_hosted: bool,
    /// The framework's version that brought it; for CCMs of an older one it is recorded only.
    #[serde(default)]
    pub since: Option<String>,
    /// What is required.
    pub requires: String,
    /// Why: what happens to a cluster otherwise.
    pub why: String,
    /// How the harness brings it about and what it looks at.
    pub provoked: String,
    /// How a person sees it, for a shell.
    #[serde(default)]
    pub by_hand: Option<String>,
    /// For how long is waited, or watched.
    pub bound: String,
    /// Where the requirement comes from.
    pub source: String,
    /// What its checks claim.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Other rows whose checks judge it.
    #[serde(default)]
    pub judged_by: Vec<String>,
}

/// What one check of a row claims.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: what follows the dot in the check's id. Absent for the check that has the row's own id.
    #[serde(default)]
    pub claim: Option<String>,
    /// How binding it is; absent where it binds as the row does.
    #[serde(default)]
    pub level: Option<Obligation>,
    /// Whether it binds CCMs of the framework profile only, where it has a level of its own.
    #[serde(default)]
    pub framework: bool,
    /// What it requires, in the present tense: the check's title in lists and reports.
    pub requires: String,
    /// Where the requirement comes from; absent where it is the row's source.
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
    /// Whose code decides it.
    pub fn owners<'a>(&'a self, area: &'a Area) -> &'a [Owner] {
        if self.owner.is_empty() { &area.owner } else { &self.owner }
    }

    /// What a CCM has to declare for it to apply.
    pub fn gates<'a>(&'a self, area: &'a Area) -> &'a [Capability] {
        self.gate.as_deref().unwrap_or(&area.gate)
    }

    /// How binding it is, in words.
    pub fn level_in_words(&self) -> String {
        let mut words = match (self.framework, self.level.level()) {
            (false, _) => self.level.to_string(),
            (true, level) => format!(
                "{} for CCMs of the framework profile, {} for others",
                self.level,
                if level == Level::Must { "SHOULD" } else { "INFO" }
            ),
        };
        if let Some(since) = &self.since {
            words.push_str(&format!(", from framework {since} on"));
        }
        words
    }
}
