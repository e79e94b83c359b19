//! Failures with a likely common cause: many checks fail in the same way if one convention of a cloud or a CCM differs from
//! the profile. A hint for the reader, never part of a verdict.

use super::wording::{one_line, printable};
use harness_core::ledger::{Entry, Ledger, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// The minimum number of failures for a common cause.
const LEAST: usize = 3;
/// The types of addresses of Nodes.
const ADDRESS_TYPES: [&str; 5] = ["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"];

/// A likely cause, and the failed checks that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonCause {
    /// Their common cause, in one line.
    pub cause: String,
    /// Their ids, in the order of the report.
    pub checks: Vec<String>,
}

/// A sign in a failure that others may share. The most certain come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// A likely cause named in the failure itself.
    Likely(String),
    /// The expected and the observed state differ in these types of addresses.
    AddressTypes(String),
    /// The expected and the observed state are the same, apart from names and numbers.
    Alike(String),
}

impl Sign {
    fn words(&self) -> String {
        match self {
            Sign::Likely(cause) => cause.clone(),
            Sign::AddressTypes(types) => format!("addresses of Nodes differ in their types: {types}"),
            Sign::Alike(what) => what.clone(),
        }
    }
}

/// The common causes of failures, the one with the most checks first. Each failure counts for one cause.
pub fn common_causes(ledger: &Ledger) -> Vec<CommonCause> {
    let mut failed: Vec<(&Entry, BTreeSet<Sign>)> =
        ledger.entries.iter().filter_map(|entry| Some((entry, signs(failure_of(entry)?)))).collect();
    let mut causes = Vec::new();
    loop {
        let mut counts: BTreeMap<&Sign, usize> = BTreeMap::new();
        failed.iter().flat_map(|(_, signs)| signs).for_each(|sign| *counts.entry(sign).or_default() += 1);
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        let Some((sign, _)) = most.filter(|(_, count)| *count >= LEAST) else { return causes };
        let sign = sign.clone();
        let (with, without) =
            failed.into_iter().partition(|(_, signs): &(_, BTreeSet<Sign>)| signs.contains(&sign));
        let with: Vec<(&Entry, BTreeSet<Sign>)> = with;
        let checks = with.into_iter().map(|(entry, _)| entry.id.clone()).collect();
        causes.push(CommonCause { cause: one_line(&sign.words()), checks });
        failed = without;
    }
}

fn failure_of(entry: &Entry) -> Option<String> {
    match &entry.outcome {
        Outcome::Fail { message } => Some(printable(message)),
        _ => None,
    }
}

fn signs(message: String) -> BTreeSet<Sign> {
    let of = |label: &str| {
        let texts = message.lines().filter_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
        texts.map(str::trim).next().filter(|text| !text.is_empty())
    };
    let likely = of("likely").map(|cause| Sign::Likely(alike(cause)));
    let (expected, seen) = (of("expected"), of("last seen"));
    let both = expected.zip(seen);
    let types = both.and_then(|(expected, seen)| address_types(expected, seen)).map(Sign::AddressTypes);
    let same = both.map(|(expected, seen)| {
        Sign::Alike(format!("expected {}, last seen {}", alike(expected), alike(seen)))
    });
    [likely, types, same].into_iter().flatten().collect()
}

/// The types of addresses in which two texts differ, if both contain any.
fn address_types(expected: &str, seen: &str) -> Option<String> {
    let types = |text: &str| -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter_map(|word| ADDRESS_TYPES.iter().copied().find(|known| *known == word)).collect()
    };
    let (expected, seen) = (types(expected), types(seen));
    if expected.is_empty() || seen.is_empty() || expected == seen {
        return None;
    }
    let list = |these: BTreeSet<&str>| these.into_iter().collect::<Vec<_>>().join(", ");
    let (missing, more) = (list(&expected - &seen), list(&seen - &expected));
    Some(match (missing.is_empty(), more.is_empty()) {
        (false, true) => format!("{missing} expected and not seen"),
        (true, _) => format!("{more} seen and not expected"),
        (false, false) => format!("{missing} expected, {more} seen instead"),
    })
}

/// A text with `*` instead of every word that contains a digit: names, ids, addresses, numbers.
pub fn alike(text: &str) -> String {
    let plain = text.split_whitespace().map(|word| {
        if !word.contains(|c: char| c.is_ascii_digit()) {
            return word.to_owned();
        }
        let inner = |c: char| !c.is_ascii_alphanumeric();
        let start = word.len() - word.trim_start_matches(inner).len();
        let end = word.trim_end_matches(inner).len();
        format!("{}*{}", &word[..start], &word[end..])
    });
    plain.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;

    fn failed(id: &str, message: &str) -> Entry {
        Entry::sample(id, Level::Must, Outcome::Fail { message: message.to_owned() })
    }

    fn causes(entries: Vec<Entry>) -> Vec<(String, String)> {
        let causes = common_causes(&Ledger { entries, ..Ledger::default() });
        causes.into_iter().map(|one| (one.cause, one.checks.join(" "))).collect()
    }

    #[test]
    fn failures_that_differ_in_the_same_address_type_are_one_group() {
        let message = |n: u32, more: &str| {
            format!(
                "expected:  [ExternalIP 100.96.0.{n}]\nlast seen: Node n{n}{more}, addresses [ExternalIP 100.96.0.{n}, InternalIP \
                 100.96.0.{n}]"
            )
        };
        let entries =
            (1..=4).map(|n| failed(&format!("NODE-ADDR-0{n}"), &message(n, &" tainted".repeat(n as usize))));
        assert_eq!(
            causes(entries.collect()),
            [(
                "addresses of Nodes differ in their types: InternalIP seen and not expected".to_owned(),
                "NODE-ADDR-01 NODE-ADDR-02 NODE-ADDR-03 NODE-ADDR-04".to_owned()
            )]
        );
    }

    #[test]
    fn a_likely_cause_that_failures_name_comes_first_and_each_failure_counts_once() {
        let message = |n: u32, likely: &str| format!("expected:  port {n}\nlast seen: none{likely}");
        let likely = "\nlikely:    the API server refuses the CCM: it may not patch services/status\n           another";
        let mut entries: Vec<Entry> =
            (1..=3).map(|n| failed(&format!("SVC-0{n}"), &message(n, likely))).collect();
        entries.extend((4..=6).map(|n| failed(&format!("SVC-0{n}"), &message(n, ""))));
        let causes = causes(entries);
        // All six have the same expected and observed state: the largest group counts.
        assert_eq!(
            causes,
            [(
                "expected port *, last seen none".to_owned(),
                "SVC-01 SVC-02 SVC-03 SVC-04 SVC-05 SVC-06".to_owned()
            )]
        );
    }

    #[test]
    fn of_two_groups_of_one_size_the_surer_sign_counts() {
        let likely = "the cloud refuses the CCM's credential";
        let message = |n: u32| {
            format!("expected:  port {n}\nlast seen: none\nlikely:    {likely}: #{n} 0.{n}s a: GET /x -> 401")
        };
        let found = causes((1..=3).map(|n| failed(&format!("SVC-0{n}"), &message(n))).collect());
        assert_eq!(
            found,
            [(
                format!("{likely}: #* *: GET /x -> *").replace("*: GET", "* a: GET"),
                "SVC-01 SVC-02 SVC-03".to_owned()
            )]
        );
    }

    #[test]
    fn few_failures_and_passes_have_no_common_cause() {
        let two = (1..=2).map(|n| failed(&format!("A-0{n}"), "expected:  a\nlast seen: b")).collect();
        assert_eq!(causes(two), []);
        let passes = (1..=5).map(|n| Entry::sample(&format!("A-0{n}"), Level::Must, Outcome::Pass)).collect();
        assert_eq!(causes(passes), []);
        let others =
            ["x", "y", "z"].map(|text| failed(text, &format!("expected:  {text}\nlast seen: no {text}")));
        assert_eq!(causes(others.into()), []);
    }
}
