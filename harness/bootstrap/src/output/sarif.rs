//! The result as SARIF 2.1.0, so that code review shows findings in place.

use super::Checkup;
use crate::finding::{Finding, Level};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The whole result, for code review. Each cell that does not boot is a separate result, at the first place of its
/// explanation.
pub(crate) fn sarif(checkup: &Checkup) -> String {
    let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
    for finding in &checkup.findings {
        rules.entry(finding.id).or_insert(&finding.why);
    }
    let mut results: Vec<Value> = checkup.findings.iter().map(result).collect();
    for cell in checkup.failing() {
        rules.insert("BOOT-MODEL", "the boot, followed in every order that matters");
        let place = cell.explanation.as_ref().and_then(|explanation| {
            explanation.steps.iter().chain(&explanation.also).find_map(|step| step.place.as_deref())
        });
        let why = cell.explanation.as_ref().map(|explanation| explanation.to_text()).unwrap_or_default();
        let message =
            format!("{}: {} with CNI {}\n{why}", cell.outcome, cell.cluster.topology, cell.cluster.cni);
        let mut result = json!({"ruleId": "BOOT-MODEL", "level": "error", "message": {"text": message}});
        if let Some((file, line)) = place.and_then(|place| place.rsplit_once(':')) {
            result["locations"] = json!([location(file, line.parse().unwrap_or(1), 1)]);
        }
        results.push(result);
    }
    let rules: Vec<Value> = rules
        .iter()
        .map(
            |(id, why)| json!({"id": id, "shortDescription": {"text": id}, "fullDescription": {"text": why}}),
        )
        .collect();
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "ccm-conformance bootstrap", "rules": rules}},
            "results": results,
        }],
    });
    format!("{value:#}\n")
}

fn result(finding: &Finding) -> Value {
    let level = match finding.level {
        Level::Must => "error",
        Level::Should => "warning",
        Level::Info => "note",
    };
    let fix = finding.fix.as_ref().map(|fix| format!("\nFix:\n{fix}")).unwrap_or_default();
    json!({
        "ruleId": finding.id,
        "level": level,
        "message": {"text": format!("{}\nWhy: {}{fix}", finding.what, finding.why)},
        "locations": [location(&finding.place.file, finding.place.line, finding.column)],
    })
}

fn location(file: &str, line: u32, column: u32) -> Value {
    // SARIF requires URIs: '/' between folders, and reserved characters escaped.
    let mut uri = String::new();
    for byte in file.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' | b'@' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    let uri = if uri.starts_with('/') { format!("file://{uri}") } else { uri };
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": line.max(1), "startColumn": column.max(1)},
        }
    })
}
