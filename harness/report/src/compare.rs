//! The differences between two runs.

use super::wording::shown_word;
use harness_core::ledger::{Entry, Ledger};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A check whose outcome differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The check.
    pub id: String,
    /// Its outcome in the first run, in one word; `None` if that run did not have the check.
    pub before: Option<&'static str>,
    /// Its outcome in the second run.
    pub after: Option<&'static str>,
}

impl Difference {
    /// Whether both runs judged the check: it passed or failed.
    pub fn is_of_judged(&self) -> bool {
        let judged = |word: Option<&str>| matches!(word, Some("pass" | "fail"));
        judged(self.before) && judged(self.after)
    }
}

/// The meaning of a difference for the CCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The check fell on the scale passed, error, blocked, failed; or it was not judged, and now fails or is blocked.
    Worse,
    /// The check rose on the scale failed, blocked, error, passed, but not to an error; or it was not judged, and now passes.
    Better,
    /// Neither: usually, the check was judged in only one of the runs, or met an error in the second one.
    Other,
}

impl Difference {
    /// Its meaning for the CCM.
    pub fn change(&self) -> Change {
        /// A rank for an outcome; `None` if the check was not judged.
        fn rank(word: Option<&str>) -> Option<u8> {
            match word {
                Some("fail") => Some(0),
                Some("blocked") => Some(1),
                Some("error") => Some(2),
                Some("pass") => Some(3),
                _ => None,
            }
        }
        match (rank(self.before), rank(self.after)) {
            // A failure that became an error was not judged again, so it is not better.
            (Some(0 | 1), Some(2)) => Change::Other,
            (Some(before), Some(after)) if after < before => Change::Worse,
            (Some(before), Some(after)) if after > before => Change::Better,
            // An error is not a result about the CCM.
            (None, Some(0 | 1)) => Change::Worse,
            (None, Some(3)) => Change::Better,
            _ => Change::Other,
        }
    }

    /// Whether the user left the check out of one of the runs, or ended that run before it.
    pub fn is_of_selection(&self) -> bool {
        let left_out = |word: Option<&str>| matches!(word, Some("deselected" | "interrupted"));
        left_out(self.before) || left_out(self.after)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.id, self.before.unwrap_or("unknown"), self.after.unwrap_or("unknown"))
    }
}

/// A check whose outcome was not the same in every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flake {
    /// The check.
    pub check: String,
    /// Its outcomes, in one word each, and the number of runs with each.
    pub outcomes: BTreeMap<&'static str, usize>,
}

impl fmt::Display for Flake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.outcomes.iter().map(|(word, count)| format!("{word} {count}")).collect();
        write!(f, "{}: {}", self.check, counts.join(", "))
    }
}

/// The checks whose outcome was not the same in all these repetitions, by id.
pub fn flakes(runs: &[Ledger]) -> Vec<Flake> {
    let mut all: BTreeMap<&str, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for entry in runs.iter().flat_map(Ledger::all) {
        *all.entry(&entry.id).or_default().entry(shown_word(&entry.outcome)).or_default() += 1;
    }
    let missing = |outcomes: &BTreeMap<&'static str, usize>| runs.len() - outcomes.values().sum::<usize>();
    let flake = |(check, mut outcomes): (&str, BTreeMap<&'static str, usize>)| {
        if missing(&outcomes) > 0 {
            outcomes.insert("unknown", missing(&outcomes));
        }
        (outcomes.len() > 1).then(|| Flake { check: check.to_owned(), outcomes })
    };
    all.into_iter().filter_map(flake).collect()
}

/// The checks whose kind of outcome differs between `before` and `after`, by id. Messages and durations do not count.
pub fn compare(before: &Ledger, after: &Ledger) -> Vec<Difference> {
    let words = |ledger: &Ledger| -> BTreeMap<String, &'static str> {
        let word = |entry: &Entry| (entry.id.clone(), shown_word(&entry.outcome));
        ledger.all().map(word).collect()
    };
    let (before, after) = (words(before), words(after));
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    ids.into_iter()
        .map(|id| Difference {
            id: id.clone(),
            before: before.get(id).copied(),
            after: after.get(id).copied(),
        })
        .filter(|difference| difference.before != difference.after)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_worse_better_or_neither() {
        let of = |before, after| Difference { id: "A-01".to_owned(), before, after }.change();
        for (before, after, change) in [
            (Some("pass"), Some("fail"), Change::Worse),
            (Some("pass"), Some("error"), Change::Worse),
            (Some("blocked"), Some("fail"), Change::Worse),
            (Some("not-declared"), Some("blocked"), Change::Worse),
            (None, Some("fail"), Change::Worse),
            (Some("fail"), Some("pass"), Change::Better),
            (Some("fail"), Some("blocked"), Change::Better),
            (Some("not-observable"), Some("pass"), Change::Better),
            (Some("error"), Some("pass"), Change::Better),
            (Some("blocked"), Some("error"), Change::Other),
            (Some("fail"), Some("error"), Change::Other),
            (Some("error"), Some("blocked"), Change::Worse),
            (Some("pass"), Some("not-observable"), Change::Other),
            (Some("fail"), None, Change::Other),
            (Some("deselected"), Some("error"), Change::Other),
        ] {
            assert_eq!(of(before, after), change, "{before:?} -> {after:?}");
        }
        let left_out = Difference { id: "A-01".to_owned(), before: Some("pass"), after: Some("deselected") };
        assert!(left_out.is_of_selection());
    }
}
