//! `badge.json`: the verdict as a badge, in the format of shields.io endpoint badges
//! (<https://shields.io/badges/endpoint-badge>).

use super::wording::verdict_word;
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Ledger, Outcome, SkipReason};
use serde_json::json;

/// The content of a badge.
pub(super) struct Badge {
    /// The label of the badge.
    pub(super) label: &'static str,
    /// The verdict, and the number of passed and of applicable MUST checks.
    pub(super) message: String,
    /// The colour, by its name on shields.io.
    pub(super) colour: &'static str,
}

/// The badge of a run.
pub(super) fn badge(ledger: &Ledger) -> Badge {
    let verdict = ledger.conformance();
    let colour = match verdict {
        Conformance::Conformant => "brightgreen",
        Conformance::Partial => "yellow",
        Conformance::NotConformant => "red",
        Conformance::NotJudged => "lightgrey",
    };
    let applies =
        |outcome: &Outcome| !matches!(outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
    let musts = || ledger.entries.iter().filter(|one| one.level == Level::Must && applies(&one.outcome));
    let passed = musts().filter(|one| one.outcome == Outcome::Pass).count();
    let interrupted = if ledger.is_interrupted() { ", interrupted" } else { "" };
    let word = format!("{}{interrupted}", verdict_word(verdict).replace('-', " "));
    let message = match verdict {
        Conformance::NotJudged => word,
        _ => format!("{word}, {passed} of {} MUSTs", musts().count()),
    };
    Badge { label: "CCM conformance", message, colour }
}

/// The badge of a run as JSON.
pub fn to_badge(ledger: &Ledger) -> String {
    let Badge { label, message, colour } = badge(ledger);
    let badge = json!({
        "schemaVersion": 1, "label": label, "message": message, "color": colour,
        "isError": ledger.conformance() == Conformance::NotConformant,
    });
    format!("{badge:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::ledger::Entry;

    #[test]
    fn the_badge_counts_what_applies() {
        let undeclared = Outcome::Skip { reason: SkipReason::NotDeclared, detail: String::new() };
        let entries = |outcome: Outcome| {
            vec![
                Entry::sample("A-01", Level::Must, Outcome::Pass),
                Entry::sample("A-02", Level::Must, outcome),
                Entry::sample("A-03", Level::Must, undeclared.clone()),
                Entry::sample("A-04", Level::Should, Outcome::Pass),
            ]
        };
        let badge = |entries| {
            let text = to_badge(&Ledger { entries, ..Ledger::default() });
            let badge: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!((&badge["schemaVersion"], &badge["label"]), (&json!(1), &json!("CCM conformance")));
            format!(
                "{} {}",
                badge["message"].as_str().unwrap_or_default(),
                badge["color"].as_str().unwrap_or_default()
            )
        };
        assert_eq!(badge(entries(Outcome::Pass)), "conformant, 2 of 2 MUSTs brightgreen");
        let failed = Outcome::Fail { message: "no".to_owned() };
        assert_eq!(badge(entries(failed)), "not conformant, 1 of 2 MUSTs red");
        assert_eq!(badge(Vec::new()), "not judged lightgrey");
    }
}
