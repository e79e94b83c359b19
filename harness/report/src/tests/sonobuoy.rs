//! Results for Sonobuoy.

use super::*;

/// The leaves of Sonobuoy's results: name and status.
fn leaves(item: &serde_json::Value, into: &mut Vec<(String, String)>) {
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    match item["items"].as_array() {
        Some(items) => items.iter().for_each(|item| leaves(item, into)),
        None => into.push((text("name"), text("status"))),
    }
}

fn for_sonobuoy(ledger: Result<&Ledger, &str>, code: u8) -> (String, Vec<(String, String)>) {
    let text = to_sonobuoy(ledger, code).expect("the ledger is plain text");
    let read: serde_json::Value = yaml::from_str(&text, Path::new("results")).expect("YAML");
    let mut found = Vec::new();
    leaves(&read, &mut found);
    (read["status"].as_str().unwrap_or_default().to_owned(), found)
}

#[test]
fn only_failures_that_decide_the_verdict_fail_for_sonobuoy() {
    let (status, found) = for_sonobuoy(Ok(&every_outcome()), exit::NOT_CONFORMANT);
    let of = |wanted: &str| -> Vec<&str> {
        found.iter().filter(|(_, status)| status == wanted).map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(status, "failed");
    assert_eq!(
        of("failed"),
        [
            "verdict: not-conformant",
            "SVC-DEL-01: what SVC-DEL-01 claims",
            "SVC-DEL-02: what SVC-DEL-02 claims",
            "HA-16: what HA-16 claims",
        ]
    );
    assert!(of("skipped").contains(&"SVC-DEL-03: what SVC-DEL-03 claims"), "a SHOULD that failed: {found:?}");
    assert_eq!(found.len(), every_outcome().entries.len() + 1, "nothing else is said");

    let good = only(|id| id == "NODE-INIT-01");
    let (status, found) = for_sonobuoy(Ok(&good), exit::CONFORMANT);
    assert_eq!((status.as_str(), found.iter().all(|(_, status)| status == "passed")), ("passed", true));
    // Partial where a complete result was required.
    assert_eq!(for_sonobuoy(Ok(&good), exit::NOT_CONFORMANT).0, "failed");
    let (status, found) = for_sonobuoy(Err("killed"), exit::ENVIRONMENT);
    assert_eq!(
        (status, found),
        ("failed".to_owned(), vec![("verdict: none".to_owned(), "failed".to_owned())])
    );
}
