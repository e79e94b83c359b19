//! Results in the format of Sonobuoy plugins that write their own results (`result-format: manual`).
//!
//! Sonobuoy derives one status from the leaves: a single failed leaf makes the whole result fail. Therefore only failures
//! that decide the verdict are `failed` here. A failed check below MUST is `skipped` with its reason, and the verdict is a
//! leaf of its own.

use super::exit::CONFORMANT;
use super::wording::{because, one_line, outcome_text, outcome_word, verdict_word};
use harness_config::yaml::{self, YamlError};
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// The file name that Sonobuoy expects by default.
pub const SONOBUOY_RESULTS: &str = "sonobuoy_results.yaml";

/// The number of reasons that are listed for a verdict. Each check has its own reason as well.
const REASONS: usize = 20;

const PASSED: &str = "passed";
const FAILED: &str = "failed";
const SKIPPED: &str = "skipped";

/// A result and the results below it.
#[derive(Debug, Serialize)]
struct Item {
    name: String,
    status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    details: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<Item>,
}

impl Item {
    fn leaf(name: String, status: &'static str) -> Item {
        Item { name, status, meta: BTreeMap::new(), details: BTreeMap::new(), items: Vec::new() }
    }

    fn of(name: String, items: Vec<Item>) -> Item {
        let failed = items.iter().any(|item| item.status == FAILED);
        Item { items, ..Item::leaf(name, if failed { FAILED } else { PASSED }) }
    }
}

/// The results of a run that ended with this exit code. `ledger` is its report; `why` is the reason if there is no report.
///
/// # Errors
/// The YAML writer fails, which does not happen with text.
pub fn to_sonobuoy(ledger: Result<&Ledger, &str>, code: u8) -> Result<String, YamlError> {
    let status = if code == CONFORMANT { PASSED } else { FAILED };
    let mut verdict = match ledger {
        Ok(ledger) => Item::leaf(format!("verdict: {}", verdict_word(ledger.conformance())), status),
        Err(_) => Item::leaf("verdict: none".to_owned(), FAILED),
    };
    verdict.meta.insert("exit-code", code.to_string());
    let mut reasons: Vec<String> = match ledger {
        Ok(ledger) => {
            because(ledger).into_iter().map(|(id, why)| format!("{id} {why}").trim().to_owned()).collect()
        }
        Err(why) => vec![why.to_owned()],
    };
    if let Some(more) = reasons.len().checked_sub(REASONS).filter(|more| *more > 0) {
        reasons.truncate(REASONS);
        reasons.push(format!("and {more} more"));
    }
    if !reasons.is_empty() {
        verdict.details.insert("because", reasons.join("\n"));
    }
    let mut items = vec![verdict];
    let entries = ledger.map(|ledger| ledger.entries.as_slice()).unwrap_or_default();
    let mut suites: Vec<(&str, Vec<Item>)> = Vec::new();
    for entry in entries {
        match suites.iter_mut().find(|(name, _)| *name == entry.suite) {
            Some((_, items)) => items.push(of_check(entry)),
            None => suites.push((&entry.suite, vec![of_check(entry)])),
        }
    }
    items.extend(suites.into_iter().map(|(name, items)| Item::of(name.to_owned(), items)));
    yaml::to_string(&Item::of("ccm-conformance".to_owned(), items))
}

fn of_check(entry: &Entry) -> Item {
    let status = match (&entry.outcome, entry.level) {
        (Outcome::Pass, _) => PASSED,
        (Outcome::Fail { .. } | Outcome::Blocked { .. }, Level::Must) | (Outcome::Error { .. }, _) => FAILED,
        (Outcome::Fail { .. } | Outcome::Blocked { .. } | Outcome::Skip { .. }, _) => SKIPPED,
    };
    let mut item = Item::leaf(format!("{}: {}", entry.id, one_line(&entry.title)), status);
    item.meta.insert("level", entry.level.to_string());
    item.meta.insert("outcome", outcome_word(&entry.outcome).to_owned());
    if let Some(text) = outcome_text(&entry.outcome) {
        item.details.insert("message", text.to_owned());
    }
    item
}
