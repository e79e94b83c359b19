//! `report.yaml`: writing and reading the report for people and programs.

use super::profile_result::{ProfileResult, profile_results};
use super::wording::{because, one_line, outcome_text, outcome_word, verdict_word};
use harness_config::schema::of_output;
use harness_config::yaml::{self, YamlError};
use harness_config::{API_VERSION, HumanDuration};
use harness_core::check::{Isolation, Level};
use harness_core::ledger::{Entry, Ledger, Outcome, Setting, SkipReason, StageTime, Stream, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The `kind` of a report.
const KIND: &str = "Report";
/// The keys of a report that are derived from the rest of it, and are ignored when read.
pub(super) const DERIVED: &[&str] = &["verdict", "because", "relaxed", "counts", "profiles"];
/// The key of its checks.
pub(super) const CHECKS: &str = "checks";

/// The reason why a text is not a report.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It is not YAML, or does not have the structure of a report.
    #[error(transparent)]
    Form(#[from] YamlError),
    /// Another kind of file.
    #[error("{file}: this is not a report{}; name the report.yaml of a run", other(kind))]
    Kind {
        /// The file name given by the caller.
        file: String,
        /// The kind in the file.
        kind: String,
    },
    /// Another version of the format.
    #[error("{file}: not a report of this version: apiVersion '{api_version}', expected '{API_VERSION}'")]
    Header {
        /// The file name given by the caller.
        file: String,
        /// The version in the file.
        api_version: String,
    },
    /// An unknown outcome or level.
    #[error("{file}: check {id}: '{word}' is not an outcome")]
    Outcome {
        /// The file name given by the caller.
        file: String,
        /// The check.
        id: String,
        /// The value found.
        word: String,
    },
}

/// The kind that a file names instead of that of a report.
fn other(kind: &str) -> String {
    if kind.is_empty() { String::new() } else { format!(" but of the kind '{kind}'") }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Report")]
/// The report of a run.
struct ReportFile {
    /// Version of this format.
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The kind of this file.
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// The verdict in a word. Derived from the checks; ignored when read.
    verdict: String,
    /// The basis of the verdict. Derived from the checks; ignored when read.
    because: Vec<Because>,
    /// The settings that are more lenient than the contract. Derived from the subject; ignored when read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relaxed: Vec<Setting>,
    /// The number of checks for each level and outcome. Derived from the checks; ignored when read.
    counts: Counts,
    /// The result of each profile of conformance. Derived from the checks; ignored when read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<ProfileResult>,
    /// Causes that explain more than one failure, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    explanations: Vec<String>,
    /// Why the environment did not start or the run was stopped early, if that happened.
    environment_error: Option<String>,
    /// The stream of events from which this report was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<Stream>,
    /// The component under test and its environment.
    subject: Subject,
    /// The start time of the run (RFC 3339).
    started: String,
    /// Its duration.
    duration: HumanDuration,
    /// The durations of its stages.
    stages: Vec<StageFile>,
    /// Every check, in the order of the suites.
    checks: Vec<CheckFile>,
    /// Private checks of a vendor, which are not part of the contract. They do not affect the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    private_checks: Vec<CheckFile>,
}

/// The number of checks for each level and outcome.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE", deny_unknown_fields)]
struct Counts {
    must: LevelCounts,
    should: LevelCounts,
    info: LevelCounts,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LevelCounts {
    pass: usize,
    fail: usize,
    #[serde(default)]
    blocked: usize,
    error: usize,
    not_observable: usize,
    deselected: usize,
    not_declared: usize,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Because {
    /// The check; absent if the reason does not concern a check.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    id: String,
    /// The reason.
    why: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StageFile {
    /// The stage, e.g. `cluster`.
    stage: String,
    /// Its duration.
    took: HumanDuration,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckFile {
    /// Its id.
    id: String,
    /// Its suite.
    suite: String,
    /// Its level.
    level: Level,
    /// Its claim.
    title: String,
    /// `pass`, `fail`, `blocked`, `error`, `not-declared`, `not-observable` or `deselected`.
    outcome: String,
    /// The check about the violated claim that blocked it, if it was blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked_by: Option<String>,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The vendor's explanation, from the profile; ignored when read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    declared: Option<String>,
    /// How it affects checks that run at the same time.
    sharing: Isolation,
    /// Its start time (RFC 3339); absent if it did not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    started: String,
    /// Its duration.
    duration: HumanDuration,
    /// The share of its longest wait's limit that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_used_percent: Option<u32>,
    /// Folder of its evidence, relative to the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
    /// Its measurements, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, String>,
}

/// The JSON Schema of `report.yaml`.
pub fn schema() -> Value {
    of_output::<ReportFile>()
}

/// The text of `report.yaml`. Keys have a fixed order; checks have the order of the ledger.
///
/// # Errors
/// A text contains characters that YAML cannot represent.
pub fn to_yaml(ledger: &Ledger) -> Result<String, YamlError> {
    yaml::to_string(&file_of(ledger))
}

/// The content that [`to_yaml`] writes for a ledger, as one value.
pub(super) fn document(ledger: &Ledger) -> Value {
    serde_json::to_value(file_of(ledger)).expect("a report is plain data")
}

fn file_of(ledger: &Ledger) -> ReportFile {
    let millis = |ms| HumanDuration(Duration::from_millis(ms));
    ReportFile {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        verdict: verdict_word(ledger.conformance()).to_owned(),
        because: because(ledger).into_iter().map(|(id, why)| Because { id, why }).collect(),
        relaxed: ledger.subject.relaxed().cloned().collect(),
        counts: counts(ledger),
        profiles: profile_results(ledger),
        explanations: ledger.explanations.clone(),
        environment_error: ledger.environment_error.clone(),
        stream: ledger.stream.clone(),
        subject: ledger.subject.clone(),
        started: ledger.started.clone(),
        duration: millis(ledger.duration_ms),
        stages: ledger
            .stages
            .iter()
            .map(|s| StageFile { stage: s.stage.clone(), took: millis(s.took_ms) })
            .collect(),
        checks: checks_of(&ledger.entries, &ledger.subject),
        private_checks: checks_of(&ledger.private, &ledger.subject),
    }
}

fn checks_of(entries: &[Entry], subject: &Subject) -> Vec<CheckFile> {
    let check = |entry: &Entry| CheckFile {
        id: entry.id.clone(),
        suite: entry.suite.clone(),
        level: entry.level,
        title: entry.title.clone(),
        outcome: outcome_word(&entry.outcome).to_owned(),
        blocked_by: match &entry.outcome {
            Outcome::Blocked { by, .. } => Some(by.clone()),
            _ => None,
        },
        reason: outcome_text(&entry.outcome).map(str::to_owned),
        declared: subject.deviation(&entry.id).map(str::to_owned),
        sharing: entry.sharing,
        started: entry.started.clone(),
        duration: HumanDuration(Duration::from_millis(entry.duration_ms)),
        budget_used_percent: entry.budget_used_percent,
        evidence: entry.evidence.clone(),
        facts: entry.facts.clone(),
    };
    entries.iter().map(check).collect()
}

/// The content of a `report.yaml` file.
#[derive(Clone, Debug)]
pub struct Written {
    /// The results of the run.
    pub ledger: Ledger,
    /// Everything in the text, including the derived keys.
    pub(super) document: Value,
}

#[cfg(test)]
impl Written {
    /// The report that this document represents; `None` if it is not a report.
    pub(super) fn of(document: Value) -> Option<Written> {
        let report: ReportFile = serde_json::from_value(document.clone()).ok()?;
        let is_report = report.api_version == API_VERSION && report.kind == KIND;
        let ledger = ledger_of(report, String::new).ok().filter(|_| is_report)?;
        Some(Written { ledger, document })
    }
}

/// Parses a `report.yaml`. `file` is only used in error messages. The verdict and the counts are derived from the checks;
/// their values in the text are ignored.
///
/// # Errors
/// The text is not a report of this version.
pub fn parse(text: &str, file: &Path) -> Result<Ledger, ParseError> {
    Ok(read(text, file)?.ledger)
}

/// Parses a `report.yaml` including the derived keys, so that they can be verified.
///
/// # Errors
/// As [`parse`].
pub fn read(text: &str, file: &Path) -> Result<Written, ParseError> {
    let label = || one_line(&file.to_string_lossy());
    let document: Value = yaml::from_str(text, file)?;
    let says = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if says("kind") != KIND {
        return Err(ParseError::Kind { file: label(), kind: says("kind") });
    }
    if says("apiVersion") != API_VERSION {
        return Err(ParseError::Header { file: label(), api_version: says("apiVersion") });
    }
    let report: ReportFile = yaml::from_str(text, file)?;
    let ledger = ledger_of(report, label)?;
    Ok(Written { ledger, document })
}

fn ledger_of(report: ReportFile, label: impl Fn() -> String) -> Result<Ledger, ParseError> {
    let millis = |d: HumanDuration| u64::try_from(d.0.as_millis()).unwrap_or(u64::MAX);
    Ok(Ledger {
        subject: report.subject,
        started: report.started,
        duration_ms: millis(report.duration),
        stages: report
            .stages
            .into_iter()
            .map(|s| StageTime { stage: s.stage, took_ms: millis(s.took) })
            .collect(),
        entries: entries_of(report.checks, &label)?,
        private: entries_of(report.private_checks, &label)?,
        explanations: report.explanations,
        environment_error: report.environment_error,
        stream: report.stream,
    })
}

fn entries_of(checks: Vec<CheckFile>, label: &impl Fn() -> String) -> Result<Vec<Entry>, ParseError> {
    let millis = |d: HumanDuration| u64::try_from(d.0.as_millis()).unwrap_or(u64::MAX);
    let entry = |check: CheckFile| {
        let reason = check.reason.unwrap_or_default();
        let skip = |kind, detail| Outcome::Skip { reason: kind, detail };
        let outcome = match check.outcome.as_str() {
            "pass" => Outcome::Pass,
            "fail" => Outcome::Fail { message: reason },
            "blocked" => Outcome::Blocked { by: check.blocked_by.unwrap_or_default(), message: reason },
            "error" => Outcome::Error { message: reason },
            "not-declared" => skip(SkipReason::NotDeclared, reason),
            "not-observable" => skip(SkipReason::NotObservable, reason),
            "deselected" => skip(SkipReason::Deselected, reason),
            word => return Err(ParseError::Outcome { file: label(), id: check.id, word: word.to_owned() }),
        };
        Ok(Entry {
            id: check.id,
            suite: check.suite,
            title: check.title,
            level: check.level,
            sharing: check.sharing,
            outcome,
            duration_ms: millis(check.duration),
            budget_used_percent: check.budget_used_percent,
            evidence: check.evidence,
            started: check.started,
            facts: check.facts,
        })
    };
    checks.into_iter().map(entry).collect()
}

fn counts(ledger: &Ledger) -> Counts {
    let mut counts = Counts::default();
    for entry in &ledger.entries {
        let level = match entry.level {
            Level::Must => &mut counts.must,
            Level::Should => &mut counts.should,
            Level::Info => &mut counts.info,
        };
        *match &entry.outcome {
            Outcome::Pass => &mut level.pass,
            Outcome::Fail { .. } => &mut level.fail,
            Outcome::Blocked { .. } => &mut level.blocked,
            Outcome::Error { .. } => &mut level.error,
            Outcome::Skip { reason: SkipReason::NotObservable, .. } => &mut level.not_observable,
            Outcome::Skip { reason: SkipReason::Deselected, .. } => &mut level.deselected,
            Outcome::Skip { reason: SkipReason::NotDeclared, .. } => &mut level.not_declared,
        } += 1;
    }
    counts
}
