//! OpenTelemetry: a run as a trace, in the JSON encoding of OTLP that collectors accept at `/v1/traces`.
//! Source: OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"; semantic conventions for tests and Kubernetes.

use crate::wording::{one_line, outcome_text, outcome_word, verdict_word};
use harness_core::check::chain;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Bytes of the identifier of a trace.
const TRACE_ID: usize = 16;
/// Bytes of the identifier of a span.
const SPAN_ID: usize = 8;
/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const STATUS: [u8; 2] = [1, 2];

/// A trace with a span for the run and one for each check that ran. Identifiers are derived from the report, so that a trace
/// that is sent twice stays one trace.
///
/// # Errors
/// The start time of the run or of a check that ran is missing.
pub fn to_otlp(ledger: &Ledger) -> Result<String, String> {
    let trace = Trace::of(ledger);
    let mut spans = vec![trace.run(ledger)?];
    for entry in ledger.all().filter(|entry| !entry.started.is_empty()) {
        spans.push(trace.check(entry)?);
    }
    let subject = &ledger.subject;
    // A simulated cluster runs programs.
    let tested = if subject.simulated { "process.executable.path" } else { "container.image.name" };
    let resource = [
        ("service.name", "ccm-conformance"),
        ("service.version", &subject.harness_version),
        ("ccm.profile", &subject.profile),
        (tested, &subject.image),
        ("k8s.cluster.version", &subject.kubernetes_version),
        ("ccm.cluster.backend", &subject.backend),
        ("ccm.topology", &subject.topology),
    ];
    let document = json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeSpans": [{
            "scope": { "name": "ccm-conformance", "version": subject.harness_version },
            "spans": spans,
        }],
    }]});
    // One line, because the file exporter and receiver of the collector use one document for each line.
    Ok(format!("{document}\n"))
}

/// The attributes that all spans of a run share.
struct Trace {
    id: String,
    run: String,
}

impl Trace {
    fn of(ledger: &Ledger) -> Trace {
        let stream = ledger.stream.as_ref().map(|stream| stream.sha256.as_str()).unwrap_or_default();
        let named = format!("{} {stream}", ledger.started);
        Trace { id: identifier(&named, TRACE_ID), run: identifier(&format!("run {named}"), SPAN_ID) }
    }

    fn run(&self, ledger: &Ledger) -> Result<Value, String> {
        let verdict = ledger.conformance();
        let failed = matches!(verdict, Conformance::NotConformant | Conformance::NotJudged);
        let count = |word: &str| {
            let of_word = ledger.entries.iter().filter(|entry| outcome_word(&entry.outcome) == word);
            of_word.count().to_string()
        };
        let mut all = vec![("ccm.verdict".to_owned(), verdict_word(verdict).to_owned())];
        all.extend(
            ["pass", "fail", "blocked", "error"].map(|word| (format!("ccm.checks.{word}"), count(word))),
        );
        all.extend(
            ledger
                .stages
                .iter()
                .map(|stage| (format!("ccm.stage.{}.ms", stage.stage), stage.took_ms.to_string())),
        );
        let mut span = self.span(&self.run, &ledger.subject.profile, &ledger.started, ledger.duration_ms)?;
        span["name"] = json!(format!("ccm-conformance run {}", ledger.subject.profile));
        span["attributes"] = attributes(&all);
        span["status"] = status(failed, ledger.environment_error.as_deref());
        Ok(span)
    }

    fn check(&self, entry: &Entry) -> Result<Value, String> {
        let id = identifier(&format!("{} {}", self.id, entry.id), SPAN_ID);
        let mut span = self.span(&id, &entry.id, &entry.started, entry.duration_ms)?;
        let mut all = vec![
            ("test.suite.name".to_owned(), entry.suite.clone()),
            ("test.case.name".to_owned(), entry.id.clone()),
            ("test.case.result.status".to_owned(), outcome_word(&entry.outcome).to_owned()),
            ("ccm.check.title".to_owned(), entry.title.clone()),
            ("ccm.check.level".to_owned(), entry.level.to_string()),
        ];
        all.extend(entry.facts.iter().map(|(name, value)| (format!("ccm.fact.{name}"), value.clone())));
        let failed = !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. });
        span["parentSpanId"] = json!(self.run);
        span["attributes"] = attributes(&all);
        span["status"] = status(failed, outcome_text(&entry.outcome));
        Ok(span)
    }

    fn span(&self, id: &str, name: &str, started: &str, took_ms: u64) -> Result<Value, String> {
        let began: Timestamp =
            started.parse().map_err(|error| format!("{name}: started: '{started}': {}", chain(&error)))?;
        let began = began.as_nanosecond();
        Ok(json!({
            "traceId": self.id,
            "spanId": id,
            "name": name,
            "kind": INTERNAL,
            // 64-bit numbers are strings in this encoding.
            "startTimeUnixNano": began.to_string(),
            "endTimeUnixNano": (began + i128::from(took_ms) * 1_000_000).to_string(),
        }))
    }
}

/// The first bytes of a digest, in hexadecimal digits.
fn identifier(of: &str, bytes: usize) -> String {
    Sha256::digest(of).iter().take(bytes).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Attributes whose value is not empty.
fn attributes<K: AsRef<str>, V: AsRef<str>>(all: &[(K, V)]) -> Value {
    let known = all.iter().filter(|(_, value)| !value.as_ref().is_empty());
    known
        .map(|(key, value)| json!({ "key": key.as_ref(), "value": { "stringValue": value.as_ref() } }))
        .collect()
}

fn status(failed: bool, message: Option<&str>) -> Value {
    let mut status = json!({ "code": STATUS[usize::from(failed)] });
    if let Some(message) = message.filter(|_| failed) {
        status["message"] = json!(one_line(message));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;

    fn ledger() -> Ledger {
        let outcome = Outcome::Fail { message: "expected: 80\nlast seen: 81".to_owned() };
        let ran = |id: &str, outcome| Entry {
            started: "2026-03-01T12:00:42.5Z".to_owned(),
            duration_ms: 1_500,
            ..Entry::sample(id, Level::Must, outcome)
        };
        let entries = vec![
            ran("A-01", Outcome::Pass),
            ran("A-02", outcome.clone()),
            Entry::sample("A-03", Level::Must, outcome),
        ];
        Ledger {
            entries,
            started: "2026-03-01T12:00:00Z".to_owned(),
            duration_ms: 60_000,
            ..Ledger::default()
        }
    }

    fn spans(ledger: &Ledger) -> Vec<Value> {
        let text = to_otlp(ledger).expect("times");
        assert_eq!(text.lines().count(), 1);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
    }

    #[test]
    fn a_run_is_the_parent_of_its_checks() {
        let spans = spans(&ledger());
        assert_eq!(spans.len(), 3, "a check that did not run has no span");
        for check in &spans[1..] {
            assert_eq!(check["parentSpanId"], spans[0]["spanId"]);
            assert_eq!(check["traceId"], spans[0]["traceId"]);
            assert_eq!(
                (&check["startTimeUnixNano"], &check["endTimeUnixNano"]),
                (&json!("1772366442500000000"), &json!("1772366444000000000"))
            );
        }
        let status = |span: &Value| span["status"].clone();
        assert_eq!(status(&spans[1]), json!({ "code": 1 }));
        assert_eq!(status(&spans[2]), json!({ "code": 2, "message": "expected: 80; last seen: 81" }));
        assert_eq!(spans[0]["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(spans[0]["spanId"].as_str().map(str::len), Some(16));
    }

    #[test]
    fn the_same_report_is_the_same_trace_and_another_run_another_one() {
        let other = Ledger { started: "2026-03-01T13:00:00Z".to_owned(), ..ledger() };
        assert_eq!(spans(&ledger()), spans(&ledger()));
        assert_ne!(spans(&ledger())[0]["traceId"], spans(&other)[0]["traceId"]);
    }

    #[test]
    fn a_report_without_a_time_is_refused_by_name() {
        let mut ledger = ledger();
        ledger.entries[0].started = "yesterday".to_owned();
        assert!(to_otlp(&ledger).expect_err("no time").starts_with("A-01: started: 'yesterday': "));
    }
}
