//! The results of the profiles of conformance.
//!
//! A CCM is conformant to a profile only if each applicable MUST check of the profile was judged and passed, on a real
//! cluster and with the limits of the contract. Results of other checks do not matter.

use super::golden::Golden;
use super::wording::verdict_word;
use harness_config::contract::ConformanceProfile;
use harness_config::{SELECT, TEST_FILTER};
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};
use harness_core::output::first_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The word for a profile that does not apply to a CCM.
const NOT_DECLARED: &str = "not-declared";

/// The result of a profile of conformance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProfileResult {
    /// The profile.
    pub(super) profile: String,
    /// `conformant`, `partial`, `not-conformant` or `not-judged`; `not-declared` if none of its capabilities is declared.
    pub(super) standing: String,
    /// The number of its MUST checks that apply.
    pub(super) musts: usize,
    /// The number of them that passed.
    pub(super) passed: usize,
    /// The number of them that the user left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) left_out: usize,
    /// The other MUST checks that prevent conformance: those that failed or were blocked; if there are none, those that were
    /// not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) because: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The result of each profile of the harness version that created the report; empty for an unknown version.
pub(super) fn profile_results(ledger: &Ledger) -> Vec<ProfileResult> {
    match Golden::of(&ledger.subject.harness_version) {
        Ok(Some(golden)) => {
            golden.profiles.iter().map(|profile| standing(profile, ledger, &golden)).collect()
        }
        Ok(None) | Err(_) => Vec::new(),
    }
}

fn standing(profile: &ConformanceProfile, ledger: &Ledger, golden: &Golden) -> ProfileResult {
    let applies =
        |entry: &&Entry| !matches!(entry.outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
    let of_it: Vec<&Entry> =
        ledger.entries.iter().filter(|entry| profile.includes(&entry.id)).filter(applies).collect();
    let musts: Vec<&Entry> = of_it.iter().copied().filter(|entry| entry.level == Level::Must).collect();
    let ids = |wanted: &dyn Fn(&Outcome) -> bool| -> Vec<String> {
        musts.iter().filter(|entry| wanted(&entry.outcome)).map(|entry| entry.id.clone()).collect()
    };
    // A report without a check does not prove its claim.
    let there: BTreeSet<&str> = ledger.entries.iter().map(|entry| entry.id.as_str()).collect();
    let framework = ledger.subject.framework_version.as_deref();
    let absent = golden.checks.iter().filter(|check| {
        profile.includes(&check.id)
            && check.level_for(framework) == Level::Must
            && !there.contains(check.id.as_str())
    });
    let absent: Vec<String> = absent.map(|check| check.id.clone()).collect();
    let passed = ids(&|outcome| *outcome == Outcome::Pass).len();
    let broken = ids(&|outcome| matches!(outcome, Outcome::Fail { .. } | Outcome::Blocked { .. }));
    let is_left_out =
        |outcome: &Outcome| matches!(outcome, Outcome::Skip { reason: SkipReason::Deselected, .. });
    let left_out = ids(&is_left_out).len();
    let mut open = ids(&|outcome| {
        matches!(outcome, Outcome::Skip { .. } | Outcome::Error { .. }) && !is_left_out(outcome)
    });
    open.extend(absent.iter().cloned());
    let (word, because) = if !of_it.iter().any(|entry| profile.is_about(&entry.id)) {
        (NOT_DECLARED, Vec::new())
    } else if !broken.is_empty() {
        (verdict_word(Conformance::NotConformant), broken)
    } else if ledger.environment_error.is_some() || ledger.is_interrupted() || passed == 0 {
        (verdict_word(Conformance::NotJudged), open)
    } else if left_out > 0 || !open.is_empty() || ledger.subject.simulated || has_softer_limits(ledger) {
        (verdict_word(Conformance::Partial), open)
    } else {
        (verdict_word(Conformance::Conformant), Vec::new())
    };
    ProfileResult {
        profile: profile.profile.clone(),
        standing: word.to_owned(),
        musts: musts.len() + absent.len(),
        passed,
        left_out,
        because,
    }
}

/// Whether a setting other than the selection of checks is more lenient than the contract. Checks that were left out only
/// count for their profiles.
fn has_softer_limits(ledger: &Ledger) -> bool {
    ledger.subject.relaxed().any(|one| !one.setting.starts_with(SELECT) && one.setting != TEST_FILTER)
}

/// The profiles, each in a line, for the terminal.
pub(super) fn lines(ledger: &Ledger) -> Vec<String> {
    let profile_results = profile_results(ledger);
    let width = profile_results.iter().map(|one| one.profile.len()).max().unwrap_or(0);
    let line = |one: &ProfileResult| {
        let ProfileResult { profile, standing, musts, passed, left_out, because } = one;
        let mut line = format!("{profile:<width$}  {standing:<14}");
        if standing != NOT_DECLARED {
            line.push_str(&format!("  {passed} of {musts} MUSTs passed"));
            if *left_out > 0 {
                line.push_str(&format!(", {left_out} left out"));
            }
        }
        if !because.is_empty() {
            line.push_str(&format!("; not {}", first_of(because, SHOWN)));
        }
        line.trim_end().to_owned()
    };
    profile_results.iter().map(line).collect()
}

/// The number of checks that a line lists.
const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GoldenCheck;
    use harness_core::ledger::{ContractComparison, SetBy, Setting, Subject};

    fn skip(reason: SkipReason) -> Outcome {
        Outcome::Skip { reason, detail: "d".to_owned() }
    }

    fn fail() -> Outcome {
        Outcome::Fail { message: "m".to_owned() }
    }

    /// The result of a profile with all A rows and B-1, for a version with these checks.
    fn of(checks: &[&str], ledger: &Ledger) -> (String, usize, usize, Vec<String>) {
        let profile = ConformanceProfile {
            profile: "a".to_owned(),
            title: "t".to_owned(),
            core: vec!["A".to_owned()],
            beside: vec!["B-1".to_owned()],
        };
        let check = |id: &&str| GoldenCheck {
            id: (*id).to_owned(),
            suite: "s".to_owned(),
            level: Level::Must,
            framework: false,
            since: None,
            title: "t".to_owned(),
        };
        let checks = checks.iter().map(check).collect();
        let golden = Golden { version: "1".to_owned(), profiles: vec![profile.clone()], checks };
        let ProfileResult { standing, musts, passed, because, .. } = standing(&profile, ledger, &golden);
        (standing, musts, passed, because)
    }

    fn ledger(entries: Vec<Entry>) -> Ledger {
        Ledger { entries, ..Ledger::default() }
    }

    #[test]
    fn a_profile_counts_when_each_of_its_musts_passed_whatever_else_failed() {
        let good = ledger(vec![
            Entry::sample("A-1", Level::Must, Outcome::Pass),
            Entry::sample("A-2.claim", Level::Must, Outcome::Pass),
            Entry::sample("A-3", Level::Should, fail()),
            Entry::sample("A-4", Level::Must, skip(SkipReason::NotDeclared)),
            Entry::sample("B-1", Level::Must, Outcome::Pass),
            Entry::sample("B-10", Level::Must, fail()),
            Entry::sample("AB-1", Level::Must, fail()),
        ]);
        assert_eq!(of(&["A-1", "B-1"], &good), ("conformant".to_owned(), 3, 3, vec![]));
        let simulated = Subject { simulated: true, ..Subject::default() };
        assert_eq!(of(&[], &Ledger { subject: simulated, ..good.clone() }).0, "partial");
        let looser = |name: &str| {
            let setting = Setting::given(name, "v".to_owned(), SetBy::RunFile);
            let settings = vec![Setting { bearing: ContractComparison::Looser, ..setting }];
            Ledger { subject: Subject { settings, ..Subject::default() }, ..good.clone() }
        };
        assert_eq!(of(&[], &looser("limits.scale")).0, "partial");
        assert_eq!(of(&[], &looser("select.suites")).0, "conformant");
    }

    #[test]
    fn a_must_that_did_not_pass_keeps_a_profile_from_counting() {
        let with = |outcome: Outcome| {
            ledger(vec![
                Entry::sample("A-1", Level::Must, Outcome::Pass),
                Entry::sample("B-1", Level::Must, outcome),
            ])
        };
        let blocked = Outcome::Blocked { by: "C-1".to_owned(), message: "m".to_owned() };
        let error = Outcome::Error { message: "m".to_owned() };
        for (outcome, word, because) in [
            (fail(), "not-conformant", &["B-1"][..]),
            (blocked, "not-conformant", &["B-1"]),
            (error, "partial", &["B-1"]),
            (skip(SkipReason::NotObservable), "partial", &["B-1"]),
            (skip(SkipReason::Deselected), "partial", &[]),
        ] {
            let why = format!("{outcome:?}");
            let because: Vec<String> = because.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(of(&[], &with(outcome)), (word.to_owned(), 2, 1, because), "{why}");
        }
        let passed = with(Outcome::Pass);
        assert_eq!(of(&["A-9"], &passed), ("partial".to_owned(), 3, 2, vec!["A-9".to_owned()]));
        let cut = Ledger { environment_error: Some("e".to_owned()), ..passed };
        assert_eq!(of(&[], &cut).0, "not-judged");
    }

    #[test]
    fn a_profile_without_declared_capabilities_does_not_apply() {
        let none = ledger(vec![
            Entry::sample("A-1", Level::Must, skip(SkipReason::NotDeclared)),
            Entry::sample("B-1", Level::Must, Outcome::Pass),
        ]);
        assert_eq!(of(&[], &none).0, "not-declared");
    }
}
