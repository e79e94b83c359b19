//! The reasons for a verdict, for the page. Checks that failed in the same way share a reason.

use crate::failure_text::{FailureText, likely_cause};
use crate::wording::{because, outcome_text, outcome_word, printable, telling_log_line};
use harness_core::ledger::{Entry, Ledger};
use serde::Serialize;

/// A reason for a verdict, with the checks that share it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cause {
    /// The checks, in the order of the report. Empty if the reason concerns the whole run.
    pub(super) checks: Vec<String>,
    /// Their outcome, in one word. Empty if the reason concerns the whole run.
    pub(super) outcome: &'static str,
    /// The subject of the first check, if its failure names one.
    pub(super) subject: String,
    /// What the first check expected. Empty if no claim was violated.
    pub(super) expected: String,
    /// The observed state, or the reason in words.
    pub(super) seen: String,
}

/// The reasons for a verdict, in the order of the report. Checks share a reason if they expected the same of the same kind
/// of object, or if they were not judged for the same reason.
pub(super) fn causes(ledger: &Ledger) -> Vec<Cause> {
    let mut all: Vec<(String, Cause)> = Vec::new();
    for (id, text) in because(ledger) {
        let entry = ledger.entries.iter().find(|entry| entry.id == id);
        let (key, cause) = entry.map_or_else(|| (text.clone(), of_run(&text)), of_check);
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, first)) => first.checks.extend(cause.checks),
            None => all.push((key, cause)),
        }
    }
    all.into_iter().map(|(_, cause)| cause).collect()
}

fn of_run(text: &str) -> Cause {
    let (subject, expected) = (String::new(), String::new());
    Cause { checks: Vec::new(), outcome: "", subject, expected, seen: text.to_owned() }
}

/// The reason of a check, and the key that groups it with the reasons of other checks.
fn of_check(entry: &Entry) -> (String, Cause) {
    let outcome = outcome_word(&entry.outcome);
    let message = printable(outcome_text(&entry.outcome).unwrap_or_default());
    let failure = FailureText::of(&message).unwrap_or_else(|| {
        let (expected, rest) = (String::new(), Vec::new());
        FailureText { expected, seen: message.clone(), rest }
    });
    let subject = failure.subject().to_owned();
    let kind = subject.split(['/', '\'']).next().map(|text| without_names(text, &entry.id));
    let shared = if failure.expected.is_empty() { &failure.seen } else { &failure.expected };
    let key = format!("{outcome}\n{}\n{}", kind.unwrap_or_default(), without_names(shared, &entry.id));
    let FailureText { expected, mut seen, .. } = failure;
    if let Some(cause) = likely_cause(&message) {
        seen = format!("{cause}; {seen}");
    }
    if let Some(line) = telling_log_line(&message).filter(|line| !seen.contains(line)) {
        seen.push_str(&format!("; its log: {line}"));
    }
    (key, Cause { checks: vec![entry.id.clone()], outcome, subject, expected, seen })
}

/// A text without the parts of object names that differ between checks and runs: the check's id and four characters of the
/// run id.
fn without_names(text: &str, id: &str) -> String {
    const OF_THE_RUN: usize = 4;
    let slug = format!("{}-", id.to_lowercase().replace('.', "-"));
    let mut parts = text.split(slug.as_str());
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('*');
        let of_the_run = part.chars().take(OF_THE_RUN).take_while(char::is_ascii_alphanumeric).count();
        plain.push_str(&part[of_the_run..]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::Outcome;

    fn failed(id: &str, expected: &str, subject: &str) -> Entry {
        let message =
            format!("expected:  {expected}\nlast seen: {subject} tainted\nsubject:   {subject} (uid 1)");
        Entry::sample(id, Level::Must, Outcome::Fail { message })
    }

    #[test]
    fn checks_that_failed_alike_share_a_reason() {
        let entries = vec![
            failed("NODE-INIT-01", "Node node-init-01-ab1c-a without taint", "Node node-init-01-ab1c-a"),
            failed("SVC-DEL-01.held", "it is held", "Service svc-del-01-held-ab1c/web"),
            failed("NODE-INIT-02", "Node node-init-02-9x9x-a without taint", "Node node-init-02-9x9x-a"),
            failed("NODE-INIT-03", "at least 1", "the fault '401' for Machine a"),
        ];
        let causes = causes(&Ledger { entries, ..Ledger::default() });
        let ids: Vec<Vec<&str>> =
            causes.iter().map(|cause| cause.checks.iter().map(String::as_str).collect()).collect();
        assert_eq!(
            ids,
            [vec!["NODE-INIT-01", "NODE-INIT-02"], vec!["SVC-DEL-01.held"], vec!["NODE-INIT-03"]]
        );
        let first = &causes[0];
        assert_eq!((first.outcome, first.subject.as_str()), ("fail", "Node node-init-01-ab1c-a"));
        assert_eq!(first.seen, "Node node-init-01-ab1c-a tainted");
    }

    #[test]
    fn a_reason_of_the_whole_run_names_no_check() {
        let environment_error = Some("no Docker".to_owned());
        let causes = causes(&Ledger { environment_error, ..Ledger::default() });
        assert_eq!(causes, [of_run("the environment did not come up: no Docker")]);
    }
}
