//! SARIF 2.1.0: failures in the format of static analysers, for code scanning on GitHub and for editors.
//! Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".

use crate::manifest_findings::{is_about_manifests, manifest_findings};
use crate::page::Demands;
use crate::wording::outcome_text;
use harness_core::check::{Level, row_of};
use harness_core::ledger::{Entry, Ledger, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The URL of the format's schema.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

/// The failed and blocked checks of a run. A failed MUST is an error, a failed SHOULD a warning, and a failed INFO check a note.
///
/// The location of a finding in a manifest is its line there; the location of any other result is the check's entry in the
/// report. `file` is the name of the report in results, and `report` is its text. `demands` explains the rules.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn to_sarif(
    ledger: &Ledger,
    demands: &Demands,
    file: &str,
    report: &str,
) -> Result<String, serde_json::Error> {
    let failed: Vec<&Entry> = ledger
        .all()
        .filter(|entry| matches!(entry.outcome, Outcome::Fail { .. } | Outcome::Blocked { .. }))
        .collect();
    let lines = lines_of_entries(report);
    let rules: Vec<Value> = failed.iter().map(|entry| rule(entry, demands)).collect();
    let results: Vec<Value> = failed
        .iter()
        .flat_map(|entry| of_check(entry, file, lines.get(entry.id.as_str()).copied().unwrap_or(1)))
        .collect();
    let sarif = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "ccm-conformance",
                "semanticVersion": ledger.subject.harness_version,
                "rules": rules,
            }},
            "automationDetails": { "id": format!("ccm-conformance/{}/", ledger.subject.profile) },
            "invocations": [{
                "executionSuccessful": ledger.environment_error.is_none(),
                "startTimeUtc": ledger.started,
            }],
            "results": results,
        }],
    });
    serde_json::to_string_pretty(&sarif).map(|text| text + "\n")
}

fn rule(entry: &Entry, demands: &Demands) -> Value {
    let mut rule = json!({
        "id": entry.id,
        "shortDescription": { "text": entry.title },
        "help": { "text": format!("ccm-conformance explain {}", entry.id) },
        "defaultConfiguration": { "level": level(entry.level) },
        "properties": { "tags": [entry.suite] },
    });
    if let Some(demand) = demands.get(row_of(&entry.id)) {
        rule["fullDescription"] = json!({ "text": format!("{} {}", demand.requires, demand.why) });
    }
    rule
}

fn of_check(entry: &Entry, report: &str, line: usize) -> Vec<Value> {
    let text = outcome_text(&entry.outcome).unwrap_or_default();
    let findings = if is_about_manifests(&entry.id) { manifest_findings(text) } else { Vec::new() };
    if findings.is_empty() {
        let blocked_by = match &entry.outcome {
            Outcome::Blocked { by, .. } => format!("blocked by {by}: "),
            _ => String::new(),
        };
        return vec![result(entry, &format!("{}\n{blocked_by}{text}", entry.title), report, line)];
    }
    let placed = findings
        .iter()
        .map(|one| result(entry, &format!("{}\n{}", one.what, entry.title), &one.file, one.line as usize));
    placed.collect()
}

fn result(entry: &Entry, message: &str, file: &str, line: usize) -> Value {
    json!({
        "ruleId": entry.id,
        "level": level(entry.level),
        "message": { "text": message },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(file) },
            "region": { "startLine": line },
        }}],
        // The same failure of a later run is the same alert, wherever its text is located.
        "partialFingerprints": { "check/v1": format!("{}:{file}", entry.id) },
    })
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Must => "error",
        Level::Should => "warning",
        Level::Info => "note",
    }
}

/// A path as a relative reference, as SARIF requires.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.replace('%', "%25").replace(' ', "%20").replace('#', "%23").replace('?', "%3F")
}

/// The line of each check's entry in the text of a report, from 1.
fn lines_of_entries(report: &str) -> BTreeMap<&str, usize> {
    let numbered = report.lines().zip(1..);
    numbered
        .filter_map(|(line, number)| Some((line.trim_start().strip_prefix("- id: ")?.trim(), number)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Demand;

    fn failed(id: &str, level: Level, message: &str) -> Entry {
        let outcome = Outcome::Fail { message: message.to_owned() };
        Entry { title: "a claim".to_owned(), ..Entry::sample(id, level, outcome) }
    }

    fn sarif(entries: Vec<Entry>) -> Value {
        let demand =
            Demand { requires: "It MUST.".to_owned(), why: "Because.".to_owned(), provoked: String::new() };
        let demands = Demands::from([("SVC-UPD-01".to_owned(), demand)]);
        let report = "checks:\n- id: A-01\n  outcome: pass\n- id: SVC-UPD-01.node-port\n  outcome: fail\n";
        let ledger = Ledger { entries, ..Ledger::default() };
        let text = to_sarif(&ledger, &demands, "./results/report.yaml", report).expect("JSON");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn a_failure_is_placed_at_its_entry_in_the_report() {
        let sarif = sarif(vec![
            Entry::sample("A-01", Level::Must, Outcome::Pass),
            failed("SVC-UPD-01.node-port", Level::Must, "expected: 80"),
            failed("B-01", Level::Should, "no"),
        ]);
        let run = &sarif["runs"][0];
        assert_eq!(run["results"].as_array().map(Vec::len), Some(2));
        let first = &run["results"][0];
        assert_eq!((&first["ruleId"], &first["level"]), (&json!("SVC-UPD-01.node-port"), &json!("error")));
        let place = &first["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "results/report.yaml");
        assert_eq!(place["region"]["startLine"], 4);
        assert_eq!(run["results"][1]["level"], "warning");
        let rule = &run["tool"]["driver"]["rules"][0];
        assert_eq!(rule["fullDescription"]["text"], "It MUST. Because.");
    }

    #[test]
    fn a_finding_in_a_manifest_is_placed_there() {
        let seen = "expected:  nothing\nlast seen: deploy/ccm.yaml:12: no toleration; rbac.yaml:3: no right";
        let sarif = sarif(vec![failed("BOOT-LINT-10", Level::Must, seen)]);
        let places: Vec<String> = sarif["runs"][0]["results"]
            .as_array()
            .expect("results")
            .iter()
            .map(|one| {
                let place = &one["locations"][0]["physicalLocation"];
                format!(
                    "{}:{}",
                    place["artifactLocation"]["uri"].as_str().unwrap_or_default(),
                    place["region"]["startLine"]
                )
            })
            .collect();
        assert_eq!(places, ["deploy/ccm.yaml:12", "rbac.yaml:3"]);
    }
}
