//! The folder of a job in the layout that Prow's Spyglass and TestGrid read from a bucket.
//! Source: kubernetes/test-infra, "gubernator: job artifact layout"; testgrid, "pb/state" and the metadata of started.json.

use crate::exit::{CONFORMANT, exit_code};
use crate::junit::to_junit;
use crate::summary::summary;
use crate::wording::verdict_word;
use harness_config::Completeness;
use harness_core::check::chain;
use harness_core::ledger::Ledger;
use jiff::Timestamp;
use serde_json::json;

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProwFile {
    /// Its path below the folder.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// The files of a job: `started.json`, `finished.json`, `build-log.txt` and the results of the checks.
///
/// A job passed if the run would have ended with exit code 0: the CCM is conformant, or partial.
///
/// # Errors
/// The start time of the run is missing, or the results cannot be written as XML.
pub fn to_prow(ledger: &Ledger) -> Result<Vec<ProwFile>, String> {
    let began: Timestamp = ledger
        .started
        .parse()
        .map_err(|error| format!("started: '{}': {}", ledger.started, chain(&error)))?;
    let ended = began.as_second() + i64::try_from(ledger.duration_ms / 1_000).unwrap_or(0);
    let passed = exit_code(ledger, Completeness::Optional) == CONFORMANT;
    let subject = &ledger.subject;
    let started = json!({ "timestamp": began.as_second() });
    // TestGrid can show each value of the metadata as a column header (`configuration_value`).
    let finished = json!({
        "timestamp": ended,
        "passed": passed,
        "result": if passed { "SUCCESS" } else { "FAILURE" },
        "metadata": {
            "verdict": verdict_word(ledger.conformance()),
            "profile": subject.profile,
            "image": subject.image,
            "image-digest": subject.image_digest,
            "kubernetes-version": subject.kubernetes_version,
            "harness-version": subject.harness_version,
            "check-set": subject.check_set,
        },
    });
    Ok(vec![
        ProwFile { path: "started.json", text: format!("{started:#}\n") },
        ProwFile { path: "finished.json", text: format!("{finished:#}\n") },
        ProwFile { path: "build-log.txt", text: summary(ledger) },
        // Spyglass and TestGrid look for `artifacts/junit*.xml`.
        ProwFile {
            path: "artifacts/junit_ccm-conformance.xml",
            text: to_junit(ledger).map_err(|error| chain(&error))?,
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::{Entry, Outcome};
    use serde_json::Value;

    #[test]
    fn a_job_has_times_a_result_and_its_checks() {
        for (outcome, passed, result) in
            [(Outcome::Pass, true, "SUCCESS"), (Outcome::Fail { message: "no".to_owned() }, false, "FAILURE")]
        {
            let ledger = Ledger {
                entries: vec![Entry::sample("A-01", Level::Must, outcome)],
                started: "2026-03-01T12:00:00Z".to_owned(),
                duration_ms: 61_500,
                ..Ledger::default()
            };
            let files = to_prow(&ledger).expect("a job");
            let text = |path: &str| &files.iter().find(|file| file.path == path).expect(path).text;
            let json = |path: &str| serde_json::from_str::<Value>(text(path)).expect("JSON");
            assert_eq!(json("started.json")["timestamp"], 1_772_366_400);
            let finished = json("finished.json");
            assert_eq!(finished["timestamp"], 1_772_366_461);
            assert_eq!((&finished["passed"], &finished["result"]), (&passed.into(), &result.into()));
            assert!(text("artifacts/junit_ccm-conformance.xml").contains("suite::A-01"));
        }
    }
}
