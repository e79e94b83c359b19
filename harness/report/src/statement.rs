//! A report as an in-toto statement: Statement v1 with the predicate test-result v0.1
//! (<https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md>).

use super::wording::verdict_word;
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, Subject};
use serde_json::{Value, json};

/// The type of a statement.
pub(super) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The type of its predicate.
pub(super) const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// SHA-256 of the files of a run, in hexadecimal digits.
#[derive(Clone, Debug)]
pub struct Digests {
    /// The digest of `report.yaml`.
    pub report: String,
    /// The digest of `events.jsonl`.
    pub events: String,
}

/// The statement; `url` is the page of the run.
///
/// `PASSED` is a conformant run, `WARNED` a partial one, `FAILED` one that is not conformant. Passed tests are the checks
/// that passed; failed tests are the MUST checks that failed; warned tests are other failed checks, and checks that apply
/// and were not judged. Checks of undeclared capabilities are in none of the lists.
///
/// # Errors
/// Nothing was judged, or the image or program under test is unknown.
pub fn statement(ledger: &Ledger, digests: &Digests, url: Option<&str>) -> Result<Value, String> {
    let result = match ledger.conformance() {
        Conformance::Conformant => "PASSED",
        Conformance::Partial => "WARNED",
        Conformance::NotConformant => "FAILED",
        Conformance::NotJudged => return Err("nothing was judged, so there is nothing to attest".to_owned()),
    };
    let subject = &ledger.subject;
    let Some(digest) = subject.image_digest.strip_prefix("sha256:").filter(|digest| !digest.is_empty())
    else {
        return Err(format!(
            "profile '{}' was judged without an image or program of a known digest, so there is no subject to attest",
            subject.profile
        ));
    };
    let ids = |wanted: &dyn Fn(&Entry) -> bool| -> Vec<&str> {
        ledger.entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.id.as_str()).collect()
    };
    let failed = |entry: &Entry| matches!(entry.outcome, Outcome::Fail { .. });
    let blocked = |entry: &Entry| matches!(entry.outcome, Outcome::Blocked { .. });
    let mut predicate = json!({
        "result": result,
        "configuration": configuration(ledger, digests),
        "passedTests": ids(&|entry| entry.outcome == Outcome::Pass),
        "warnedTests": ids(&|entry| entry.is_unjudged() || blocked(entry) || failed(entry) && entry.level != Level::Must),
        "failedTests": ids(&|entry| failed(entry) && entry.level == Level::Must),
    });
    if let Some(url) = url {
        predicate["url"] = json!(url);
    }
    Ok(json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"name": subject.image, "digest": {"sha256": digest}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }))
}

/// The materials with their digests: the report and its stream, the CCM's manifests, and the node image.
fn configuration(ledger: &Ledger, digests: &Digests) -> Vec<Value> {
    let Subject {
        profile,
        manifests_sha256,
        declared_not_judged,
        certify,
        backend,
        topology,
        kubernetes_version,
        node_image,
        node_image_digest,
        harness_version,
        check_set,
        ..
    } = &ledger.subject;
    let relaxed: Vec<String> = ledger.subject.relaxed().map(ToString::to_string).collect();
    let mut all = vec![
        json!({
            "name": "report.yaml",
            "digest": {"sha256": digests.report},
            "annotations": {
                "verdict": verdict_word(ledger.conformance()), "certify": certify, "relaxed": relaxed,
                "declaredNotJudged": declared_not_judged, "profile": profile, "backend": backend,
                "topology": topology, "kubernetesVersion": kubernetes_version,
                "harnessVersion": harness_version, "checkSet": check_set,
            },
        }),
        json!({"name": "events.jsonl", "digest": {"sha256": digests.events}}),
    ];
    if !manifests_sha256.is_empty() {
        all.push(json!({"name": "manifests", "digest": {"sha256": manifests_sha256}}));
    }
    if let Some(digest) = node_image_digest.strip_prefix("sha256:") {
        all.push(json!({"name": node_image, "digest": {"sha256": digest}}));
    }
    all
}
