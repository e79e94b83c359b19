//! What changed between two runs.

use super::wording::outcome_word;
use harness_core::ledger::{Entry, Ledger};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A check whose outcome differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The check.
    pub id: String,
    /// Its outcome in the first run, in one word; `None` when that run did not know it.
    pub before: Option<&'static str>,
    /// Its outcome in the second.
    pub after: Option<&'static str>,
}

impl Difference {
    /// Whether both runs judged the check: it passed, failed, was blocked or met an environment error.
    pub fn is_of_judged(&self) -> bool {
        let judged = |word: Option<&str>| matches!(word, Some("pass" | "fail" | "blocked" | "error"));
        judged(self.before) && judged(self.after)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.id, self.before.unwrap_or("unknown"), self.after.unwrap_or("unknown"))
    }
}

/// A check that did not end the same in every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flake {
    /// The check.
    pub check: String,
    /// How it ended, in one word, and in how many runs.
    pub outcomes: BTreeMap<&'static str, usize>,
}

impl fmt::Display for Flake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.outcomes.iter().map(|(word, count)| format!("{word} {count}")).collect();
        write!(f, "{}: {}", self.check, counts.join(", "))
    }
}

/// The checks that did not end the same in all of these runs of one and the same, by id.
pub fn flakes(runs: &[Ledger]) -> Vec<Flake> {
    let mut all: BTreeMap<&str, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for entry in runs.iter().flat_map(Ledger::all) {
        *all.entry(&entry.id).or_default().entry(outcome_word(&entry.outcome)).or_default() += 1;
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

/// The checks whose outcome is another kind in `after` than in `before`, by id. Messages and times do not count.
pub fn compare(before: &Ledger, after: &Ledger) -> Vec<Difference> {
    let words = |ledger: &Ledger| -> BTreeMap<String, &'static str> {
        let word = |entry: &Entry| (entry.id.clone(), outcome_word(&entry.outcome));
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
