//! Verifies a report against the stream of events from which it was created, the checks of the version that created it, and
//! itself.
//!
//! Complete values are compared, in the form that `report.yaml` has: every value in the report is either derived from the
//! rest of it or recorded in the stream. Texts are shortened only for display.

mod differ;
mod finding;
mod shown;
mod stream_facts;

pub use finding::Finding;
pub use shown::{ShownFindings, shown};
pub use stream_facts::StreamFacts;

use super::file::{DERIVED, Written, document};
use super::golden::{Golden, GoldenCheck};
use differ::{Difference, apart, differences};
use harness_config::untrue_limits;
use harness_core::ledger::{Ledger, Outcome, SkipReason};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The input of a verification.
#[derive(Debug)]
pub struct Material<'a> {
    /// The report.
    pub report: &'a Written,
    /// The facts in the stream of its run.
    pub stream_facts: &'a StreamFacts,
    /// The checks of the version that the report names; `None` if that version is unknown.
    pub golden: Option<&'a Golden>,
    /// The digest of the image that the report must be about, as returned by [`sha256_digest`].
    pub image: Option<&'a str>,
}

/// All findings; empty if the report is valid.
pub fn verify(material: &Material<'_>) -> Vec<Finding> {
    let Material { report: written, stream_facts, golden, image } = material;
    let report = &written.ledger;
    let mut findings = Vec::new();
    against_version(report, *golden, &mut findings);
    let made = document(report);
    against_itself(&written.document, &made, &mut findings);
    stream_facts.against(report, &made, &mut findings);
    findings.extend(untrue_limits(&report.subject.settings).into_iter().map(Finding::UntrueLimit));
    findings.extend(report.subject.relaxed().map(|one| Finding::Relaxed(one.to_string())));
    if report.subject.certify {
        findings.extend(cannot_certify(report).map(Finding::Certify));
    }
    let is = &report.subject.image_digest;
    findings.extend(image.filter(|asked| !is.eq_ignore_ascii_case(asked)).map(|asked| Finding::OtherImage {
        asked: asked.to_owned(),
        is: if is.is_empty() { "without a digest".to_owned() } else { is.clone() },
    }));
    findings
}

/// Parses the digest of an image: `sha256:` and 64 hexadecimal digits, optionally after an image name and `@`. Returns the
/// digits in lower case, without the name.
///
/// # Errors
/// It is anything else, for example a digest of another algorithm.
pub fn sha256_digest(text: &str) -> Result<String, String> {
    let digest = text.rsplit_once('@').map_or(text, |(_, digest)| digest);
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(digest.to_ascii_lowercase());
    }
    Err("expected 'sha256:' and 64 hexadecimal digits, by themselves or as IMAGE@sha256:..".to_owned())
}

fn against_version(report: &Ledger, golden: Option<&Golden>, findings: &mut Vec<Finding>) {
    let subject = &report.subject;
    let Some(golden) = golden else {
        let (version, known) = (subject.harness_version.clone(), Golden::versions().unwrap_or_default());
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
        if (&check.suite, &check.title) != (&entry.suite, &entry.title) {
            let claim = |suite: &str, title: &str| format!("{suite}: {title}");
            let (was, is) = (claim(&check.suite, &check.title), claim(&entry.suite, &entry.title));
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

/// Compares everything that was read with what the ledger in it yields: the derived keys, and values that no ledger
/// contains, such as a reason of a passed check.
fn against_itself(read: &Value, made: &Value, findings: &mut Vec<Finding>) {
    let mut derived = |key: String, says, make| {
        let (says, make) = apart(says, make);
        findings.push(Finding::Derived { key, says, make });
    };
    for key in DERIVED {
        let (says, make) = (read.get(*key).unwrap_or(&Value::Null), made.get(*key).unwrap_or(&Value::Null));
        // One difference shows that it was not computed.
        if let Some(Difference { path, one, other }) = differences(says, make).into_iter().next() {
            let path = if path.is_empty() { (*key).to_owned() } else { format!("{key}.{path}") };
            derived(path, one, other);
        }
    }
    for Difference { path, one, other } in differences(read, made) {
        let top = path.split('.').next().unwrap_or_default();
        if !DERIVED.contains(&top) {
            derived(path, one, other);
        }
    }
}

/// Conditions that a run for certification would have refused.
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

#[cfg(test)]
mod tests;
