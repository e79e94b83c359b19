//! Whether a report is what it says: held against the stream of events it was made of, against the checks of the version
//! that made it, and against itself.

use super::file::to_yaml;
use super::golden::{Golden, GoldenCheck};
use super::wording::{one_line, outcome_word};
use crate::check::Level;
use crate::config::{untrue_limits, yaml};
use crate::events::{Event, Fold, Payload};
use crate::ledger::{Entry, Ledger, Outcome, SkipReason, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is looked at.
#[derive(Debug)]
pub struct Material<'a> {
    /// The text of the report.
    pub text: &'a str,
    /// The same, read.
    pub report: &'a Ledger,
    /// The stream of its run.
    pub events: &'a [Event],
    /// The checks of the version that the report names; `None` where that version is not known.
    pub golden: Option<&'a Golden>,
    /// The image that it has to be about, by its digest.
    pub image: Option<&'a str>,
}

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// Another program made it, or none.
    #[error("version '{version}' of the harness is not known to this program, which knows {}", .known.join(", "))]
    UnknownVersion {
        /// What the report says.
        version: String,
        /// What this program knows.
        known: Vec<String>,
    },
    /// A check of that version is not in the report.
    #[error("check {0} is missing: version {1} of the harness has it")]
    RemovedCheck(String, String),
    /// The report has a check that the version does not have.
    #[error("check {0} was added: version {1} of the harness has no such check")]
    AddedCheck(String, String),
    /// A check stands there more than once.
    #[error("check {0} stands there more than once")]
    RepeatedCheck(String),
    /// A check binds otherwise than in that version.
    #[error("check {id} is of level {level}, not {is}")]
    Level {
        /// The check.
        id: String,
        /// How binding it is by the version's list.
        level: String,
        /// What the report says.
        is: String,
    },
    /// A check claims something else than in that version.
    #[error("check {id} says of itself '{is}', not '{was}'")]
    Claim {
        /// The check.
        id: String,
        /// Suite and title by the version's list.
        was: String,
        /// What the report says.
        is: String,
    },
    /// A figure that follows from the checks does not.
    #[error("'{key}' does not follow from the checks: it says {says}, they make {make}")]
    Derived {
        /// The report's key.
        key: String,
        /// What stands there.
        says: String,
        /// What it has to be.
        make: String,
    },
    /// The stream ends before the run.
    #[error("the stream of events is cut: {0}")]
    Cut(String),
    /// The stream is not the one that the report was made of.
    #[error("the stream of events is not the one the report was made of: {0}")]
    OtherStream(String),
    /// The stream contradicts itself.
    #[error("the stream of events contradicts itself: {0}")]
    Contradiction(String),
    /// A check ended otherwise by the stream.
    #[error("check {id} ended with '{stream}' by the stream of events, the report says '{report}'")]
    Outcome {
        /// The check.
        id: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A figure of a check or of the run is another by the stream.
    #[error("{what} is {stream} by the stream of events, the report says {report}")]
    Figure {
        /// Which figure of what.
        what: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// What was tested is something else by the stream.
    #[error("subject.{key} is {stream} by the stream of events, the report says {report}")]
    Subject {
        /// The key.
        key: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A setting is another by the stream.
    #[error("settings: by the stream of events '{stream}', the report says '{report}'")]
    Setting {
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A limit is not what the report makes of it.
    #[error("settings: {0}")]
    UntrueLimit(String),
    /// The result asks less than the contract does.
    #[error("relaxed: {0}; the result is not by the contract")]
    Relaxed(String),
    /// It says that it certifies, and cannot.
    #[error("it says 'certify: true', which refuses what is in it: {0}")]
    Certify(String),
    /// It is about another image.
    #[error("it is about the image {is}, not {asked}")]
    OtherImage {
        /// What was asked for.
        asked: String,
        /// What it says.
        is: String,
    },
}

/// Everything that does not hold; nothing when the report is what it says.
pub fn verify(material: &Material<'_>) -> Vec<Finding> {
    let Material { text, report, events, golden, image } = material;
    let mut findings = Vec::new();
    against_version(report, *golden, &mut findings);
    against_itself(text, report, &mut findings);
    against_stream(report, events, &mut findings);
    contradictions(events, &mut findings);
    findings.extend(untrue_limits(&report.subject.settings).into_iter().map(Finding::UntrueLimit));
    findings.extend(report.subject.relaxed().map(|one| Finding::Relaxed(one.to_string())));
    if report.subject.certify {
        findings.extend(cannot_certify(report).map(Finding::Certify));
    }
    let is = &report.subject.image_digest;
    findings.extend(image.filter(|asked| !is_digest(asked, is)).map(|asked| Finding::OtherImage {
        asked: asked.to_owned(),
        is: if is.is_empty() { "without a digest".to_owned() } else { is.clone() },
    }));
    findings
}

/// Whether a text names that digest: with or without the algorithm, or behind an image's name.
pub fn is_digest(asked: &str, is: &str) -> bool {
    let bare = |text: &str| text.rsplit(['@', ':']).next().unwrap_or_default().to_ascii_lowercase();
    !bare(is).is_empty() && bare(asked) == bare(is)
}

fn against_version(report: &Ledger, golden: Option<&Golden>, findings: &mut Vec<Finding>) {
    let subject = &report.subject;
    let Some(golden) = golden else {
        let (version, known) = (subject.harness_version.clone(), Golden::versions());
        return findings.push(Finding::UnknownVersion { version, known });
    };
    let version = || golden.version.clone();
    let of_version: BTreeMap<&str, &GoldenCheck> =
        golden.checks.iter().map(|check| (check.id.as_str(), check)).collect();
    let mut seen = BTreeSet::new();
    for entry in &report.entries {
        if !seen.insert(entry.id.as_str()) {
            findings.push(Finding::RepeatedCheck(entry.id.clone()));
        }
        let Some(check) = of_version.get(entry.id.as_str()) else {
            findings.push(Finding::AddedCheck(entry.id.clone(), version()));
            continue;
        };
        let level = check.level_for(subject.framework_version.as_deref());
        if entry.level != level {
            let (level, is) = (level.to_string(), entry.level.to_string());
            findings.push(Finding::Level { id: entry.id.clone(), level, is });
        }
        let claim = |suite: &str, title: &str| format!("{suite}: {title}");
        let (was, is) = (claim(&check.suite, &check.title), claim(&entry.suite, &entry.title));
        if was != is {
            findings.push(Finding::Claim { id: entry.id.clone(), was, is });
        }
    }
    let removed = golden.checks.iter().filter(|check| !seen.contains(check.id.as_str()));
    findings.extend(removed.map(|check| Finding::RemovedCheck(check.id.clone(), version())));
    let check_set = golden.check_set();
    if subject.check_set != check_set {
        let (key, says) = ("subject.checkSet".to_owned(), subject.check_set.clone());
        findings.push(Finding::Derived { key, says, make: check_set });
    }
}

/// What follows from the rest of a report, and is not read from it.
const DERIVED: &[&str] = &["verdict", "because", "relaxed", "counts", "profiles"];

fn against_itself(text: &str, report: &Ledger, findings: &mut Vec<Finding>) {
    let made = to_yaml(report).unwrap_or_default();
    let read = |text: &str| yaml::from_str::<Value>(text, Path::new("report")).unwrap_or_default();
    let (said, made) = (read(text), read(&made));
    for key in DERIVED {
        let (says, make) = (&said[*key], &made[*key]);
        if says != make {
            let (says, make) = (shown(says), shown(make));
            findings.push(Finding::Derived { key: (*key).to_owned(), says, make });
        }
    }
    let declared = |report: &Value| -> Vec<Value> {
        let checks = report["checks"].as_array().into_iter().flatten();
        checks.map(|check| check["declared"].clone()).collect()
    };
    for ((says, make), entry) in declared(&said).iter().zip(declared(&made)).zip(&report.entries) {
        if *says != make {
            let key = format!("declared of {}", entry.id);
            findings.push(Finding::Derived { key, says: shown(says), make: shown(&make) });
        }
    }
}

fn against_stream(report: &Ledger, events: &[Event], findings: &mut Vec<Finding>) {
    let stream = Fold::of(events).ledger();
    match (&report.stream, &stream.stream) {
        (_, None) => {
            let why = stream.environment_error.clone().unwrap_or_default();
            findings.push(Finding::Cut(why));
        }
        (None, Some(_)) => findings.push(Finding::OtherStream("the report names none".to_owned())),
        (Some(named), Some(is)) if named != is => {
            let show = |one: &crate::ledger::Stream| format!("{} events, sha256 {}", one.events, one.sha256);
            let (named, is) = (show(named), show(is));
            findings.push(Finding::OtherStream(format!("it was {named}, this one is {is}")));
        }
        (Some(_), Some(_)) => {}
    }
    subjects(&report.subject, &stream.subject, findings);
    let of_report: BTreeMap<&str, &Entry> =
        report.entries.iter().map(|entry| (entry.id.as_str(), entry)).collect();
    for entry in &stream.entries {
        // One that is missing was named by the version's list, or stands only in the stream.
        match of_report.get(entry.id.as_str()) {
            Some(said) => entries(said, entry, findings),
            None => findings.push(Finding::Outcome {
                id: entry.id.clone(),
                stream: outcome_word(&entry.outcome).to_owned(),
                report: "nothing".to_owned(),
            }),
        }
    }
    let planned: BTreeSet<&str> = stream.entries.iter().map(|entry| entry.id.as_str()).collect();
    let alone = report.entries.iter().filter(|entry| !planned.contains(entry.id.as_str()));
    findings.extend(alone.map(|entry| Finding::Outcome {
        id: entry.id.clone(),
        stream: "nothing".to_owned(),
        report: outcome_word(&entry.outcome).to_owned(),
    }));
    let figures = |ledger: &Ledger| {
        let stages: Vec<String> =
            ledger.stages.iter().map(|s| format!("{} {} ms", s.stage, s.took_ms)).collect();
        [
            ("started", ledger.started.clone()),
            ("duration", format!("{} ms", ledger.duration_ms)),
            ("stages", stages.join(", ")),
            ("explanations", ledger.explanations.join("; ")),
            ("environmentError", ledger.environment_error.clone().unwrap_or_default()),
        ]
    };
    for ((what, report), (_, stream)) in figures(report).into_iter().zip(figures(&stream)) {
        push_figure(what.to_owned(), &stream, &report, findings);
    }
}

fn subjects(report: &Subject, stream: &Subject, findings: &mut Vec<Finding>) {
    let plain = |subject: &Subject| match serde_json::to_value(subject) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (said, is) = (plain(report), plain(stream));
    let keys: BTreeSet<&String> = said.keys().chain(is.keys()).filter(|key| *key != "settings").collect();
    for key in keys {
        let (report, stream) = (&said.get(key).cloned(), &is.get(key).cloned());
        if report != stream {
            let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), shown);
            let (report, stream) = (show(report), show(stream));
            findings.push(Finding::Subject { key: key.clone(), stream, report });
        }
    }
    let (said, is) = (&report.settings, &stream.settings);
    for at in 0..said.len().max(is.len()) {
        if said.get(at) != is.get(at) {
            let show = |one: Option<&crate::ledger::Setting>| {
                one.and_then(|one| serde_json::to_string(one).ok()).unwrap_or_else(|| "nothing".to_owned())
            };
            let (report, stream) = (show(said.get(at)), show(is.get(at)));
            findings.push(Finding::Setting { stream, report });
        }
    }
}

fn entries(report: &Entry, stream: &Entry, findings: &mut Vec<Finding>) {
    let id = &stream.id;
    let (said, is) = (outcome_word(&report.outcome), outcome_word(&stream.outcome));
    if said != is {
        let (id, stream, report) = (id.clone(), is.to_owned(), said.to_owned());
        return findings.push(Finding::Outcome { id, stream, report });
    }
    let figures = |entry: &Entry| {
        let plain =
            |value: Result<Value, serde_json::Error>| value.map(|value| shown(&value)).unwrap_or_default();
        [
            ("reason", plain(serde_json::to_value(&entry.outcome))),
            ("level", entry.level.to_string()),
            ("sharing", plain(serde_json::to_value(entry.sharing))),
            ("duration", format!("{} ms", entry.duration_ms)),
            ("budgetUsedPercent", entry.budget_used_percent.map(|used| used.to_string()).unwrap_or_default()),
            ("evidence", entry.evidence.clone().unwrap_or_default()),
            ("started", entry.started.clone()),
            ("facts", plain(serde_json::to_value(&entry.facts))),
        ]
    };
    for ((what, report), (_, stream)) in figures(report).into_iter().zip(figures(stream)) {
        push_figure(format!("{what} of {id}"), &stream, &report, findings);
    }
}

fn push_figure(what: String, stream: &str, report: &str, findings: &mut Vec<Finding>) {
    if stream != report {
        let show =
            |text: &str| if text.is_empty() { "nothing".to_owned() } else { format!("'{}'", one_line(text)) };
        let (stream, report) = (show(stream), show(report));
        findings.push(Finding::Figure { what, stream, report });
    }
}

/// What cannot be so in a stream that a run wrote.
fn contradictions(events: &[Event], findings: &mut Vec<Finding>) {
    let mut broken: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut begun, mut ended, mut runs) = (BTreeSet::new(), BTreeSet::new(), 0);
    // What only records asks whether something is so, and either answer is one.
    let mut records = BTreeSet::new();
    let mut say = |what: String| findings.push(Finding::Contradiction(what));
    let mut version = None;
    for event in events {
        let id = event.check.as_deref().unwrap_or_default();
        match &event.event {
            Payload::RunBegan(head) => {
                runs += 1;
                version = Some(head.harness_version.as_str());
            }
            Payload::SubjectKnown(subject)
                if version.is_some_and(|known| known != subject.harness_version) =>
            {
                let said = version.unwrap_or_default();
                say(format!(
                    "it was begun by version {said} and speaks of version {}",
                    subject.harness_version
                ));
            }
            Payload::ChecksPlanned { checks } => {
                let info = checks.iter().filter(|check| check.level == Level::Info);
                records.extend(info.map(|check| check.id.as_str()));
            }
            Payload::CheckBegan { .. } => {
                begun.insert(id);
            }
            Payload::PromiseBroken(promise) if promise.judged && !records.contains(id) => {
                broken.insert(id, promise.promise.as_str());
            }
            Payload::CheckEnded { ended: outcome, .. } => {
                if !ended.insert(id) {
                    say(format!("check {id} ends twice"));
                }
                if *outcome == Outcome::Pass {
                    if !begun.contains(id) {
                        say(format!("check {id} passes and has not begun"));
                    }
                    if let Some(promise) = broken.get(id) {
                        say(format!("check {id} passes, and its promise '{}' was broken", one_line(promise)));
                    }
                }
            }
            _ => {}
        }
    }
    if runs > 1 {
        say(format!("it holds the beginning of {runs} runs"));
    }
}

/// What a run for certification would have refused.
fn cannot_certify(report: &Ledger) -> impl Iterator<Item = String> {
    let subject = &report.subject;
    let left_out = report
        .entries
        .iter()
        .filter(|entry| matches!(entry.outcome, Outcome::Skip { reason: SkipReason::Deselected, .. }));
    let left_out = left_out.count();
    let relaxed = subject.relaxed().map(ToString::to_string);
    let simulated = subject.simulated.then(|| "the cluster was a simulation".to_owned());
    let unjudged = subject.declared_not_judged.iter().map(|key| format!("{key} is declared and not judged"));
    let left_out = (left_out > 0).then(|| format!("{left_out} checks were left out"));
    let all: Vec<String> = relaxed.chain(simulated).chain(unjudged).chain(left_out).collect();
    all.into_iter()
}

/// A value in one line.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("'{}'", one_line(text)),
        other => one_line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
