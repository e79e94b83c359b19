//! What a program reads of checks: a JSON object in each line.

use super::started::Started;
use harness_config::Choice;
use harness_core::ledger::{Entry, Ledger, Outcome};
use harness_report::{expected_and_seen, outcome_word, verdict_word};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn began(started: &Started<'_>) -> String {
    let skipped = started.planned.iter().filter(|one| one.choice != Choice::Selected).count();
    line(json!({"type": "run-began", "checks": started.total, "skipped": skipped}))
}

pub(super) fn check_began(id: &str, suite: &str) -> String {
    line(json!({"type": "check-began", "id": id, "suite": suite}))
}

pub(super) fn check_ended(entry: &Entry) -> String {
    let mut said = json!({
        "type": "check-ended", "id": entry.id, "suite": entry.suite, "title": entry.title, "level": entry.level,
        "outcome": outcome_word(&entry.outcome), "durationMs": entry.duration_ms,
    });
    let mut add = |key: &str, value: Value| said[key] = value;
    match &entry.outcome {
        Outcome::Pass => {}
        Outcome::Fail { message } | Outcome::Error { message } => {
            if let Some((expected, seen)) = expected_and_seen(message) {
                add("expected", expected.into());
                add("lastSeen", seen.into());
            }
            add("message", message.as_str().into());
        }
        Outcome::Blocked { by, message } => {
            add("blockedBy", by.as_str().into());
            add("message", message.as_str().into());
        }
        Outcome::Skip { detail, .. } => add("message", detail.as_str().into()),
    }
    if let Some(evidence) = &entry.evidence {
        add("evidence", evidence.as_str().into());
    }
    line(said)
}

pub(super) fn ended(ledger: &Ledger, code: u8) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in ledger.all() {
        *counts.entry(outcome_word(&entry.outcome)).or_default() += 1;
    }
    line(json!({
        "type": "run-ended", "verdict": verdict_word(ledger.conformance()), "exitCode": code, "counts": counts,
        "durationMs": ledger.duration_ms, "environmentError": ledger.environment_error,
    }))
}

pub(super) fn failed(why: &str) -> String {
    line(json!({"type": "error", "message": why}))
}

fn line(value: Value) -> String {
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;

    #[test]
    fn a_failure_has_what_was_expected_and_what_was_seen() {
        let message = "expected:  30343\nlast seen: 30012\npromise:   it follows".to_owned();
        let text = check_ended(&Entry::sample("A-01", Level::Must, Outcome::Fail { message }));
        assert_eq!(text.lines().count(), 1);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&value["expected"], &value["lastSeen"]), (&json!("30343"), &json!("30012")));
        assert_eq!((&value["outcome"], &value["level"]), (&json!("fail"), &json!("MUST")));
        let end: Value = serde_json::from_str(&ended(&Ledger::default(), 4)).expect("JSON");
        assert_eq!((&end["verdict"], &end["exitCode"]), (&json!("not-judged"), &json!(4)));
    }
}
