//! The summary on the page of a job, in GitHub's Markdown: the essentials first, details folded.

use super::{Job, cell, troubled};
use crate::failure_text::FailureText;
use crate::wording::{
    human_duration, human_time, outcome_text, outcome_word, printable, unjudged, verdict_word,
};
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};
use std::fmt::Write as _;

/// The number of failures that are shown in full. The report contains the others.
const FAILURES: usize = 50;
/// The number of characters shown of a failure's text: GitHub shows at most 1 MiB in total.
const TEXT: usize = 4_000;
/// The outcomes, in the order of the columns.
const OUTCOMES: [&str; 7] =
    ["pass", "fail", "blocked", "error", "not-observable", "deselected", "not-declared"];

/// Writing into a `String` cannot fail.
macro_rules! put {
    ($text:expr, $($format:tt)*) => {{
        let _ = writeln!($text, $($format)*);
    }};
}

/// The job's summary, in GitHub's Markdown.
pub fn step_summary(ledger: &Ledger, job: &Job) -> String {
    let mut text = String::new();
    head(ledger, job, &mut text);
    counts(ledger, &mut text);
    problems(ledger, &mut text);
    left_unjudged(ledger, &mut text);
    checks_that_ran(ledger, &mut text);
    text
}

fn head(ledger: &Ledger, job: &Job, text: &mut String) {
    let subject = &ledger.subject;
    let verdict = ledger.conformance();
    let sign = match verdict {
        Conformance::Conformant => "✅",
        Conformance::Partial => "🟡",
        Conformance::NotConformant => "❌",
        Conformance::NotJudged => "⚠️",
    };
    put!(text, "## {sign} {}: {}\n", verdict_word(verdict).replace('-', " "), cell(&subject.profile));
    let is_applicable =
        |outcome: &Outcome| !matches!(outcome, Outcome::Skip { reason: SkipReason::NotDeclared, .. });
    let musts = || ledger.entries.iter().filter(|entry| entry.level == Level::Must);
    let applicable = musts().filter(|entry| is_applicable(&entry.outcome)).count();
    let passed = musts().filter(|entry| entry.outcome == Outcome::Pass).count();
    put!(text, "{passed} of {applicable} applicable MUST checks passed.\n");
    let took = if ledger.duration_ms > 0 { human_duration(ledger.duration_ms) } else { String::new() };
    let facts = [
        ("CCM", subject.image.clone()),
        ("Kubernetes", subject.kubernetes_version.clone()),
        ("cluster", [subject.backend.as_str(), subject.topology.as_str()].join(" ").trim().to_owned()),
        ("started", human_time(&ledger.started)),
        ("took", took),
        ("ccm-conformance", subject.harness_version.clone()),
    ];
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    let facts: Vec<String> = known.map(|(name, value)| format!("{name} {}", cell(value))).collect();
    put!(text, "{}\n", facts.join(" · "));
    if let Some(run) = &job.run {
        let results = cell(&job.results);
        put!(
            text,
            "[Artifacts of this run]({run}#artifacts): open `report.html` from the folder {results}.\n"
        );
    }
    if let Some(error) = &ledger.environment_error {
        put!(text, "The environment did not come up: {}\n", cell(error));
    }
    for explanation in &ledger.explanations {
        put!(text, "- {}", cell(explanation));
    }
}

fn counts(ledger: &Ledger, text: &mut String) {
    let used: Vec<&str> = OUTCOMES
        .into_iter()
        .filter(|word| ledger.entries.iter().any(|entry| outcome_word(&entry.outcome) == *word))
        .collect();
    if used.is_empty() {
        return;
    }
    let heads: Vec<String> = used.iter().map(|word| word.replace('-', " ")).collect();
    put!(text, "\n| | {} |\n|---|{}", heads.join(" | "), "---:|".repeat(used.len()));
    for level in [Level::Must, Level::Should, Level::Info] {
        let count = |word: &&str| {
            let of = ledger.entries.iter().filter(|entry| entry.level == level);
            of.filter(|entry| outcome_word(&entry.outcome) == *word).count().to_string()
        };
        put!(text, "| {level} | {} |", used.iter().map(count).collect::<Vec<_>>().join(" | "));
    }
}

/// Checks that failed, were blocked or had an error: expected and observed state in a table, and the full texts folded.
fn problems(ledger: &Ledger, text: &mut String) {
    let all: Vec<&Entry> = troubled(ledger).collect();
    if all.is_empty() {
        return;
    }
    put!(text, "\n### Problems\n\n| check | level | result | expected | actual |\n|---|---|---|---|---|");
    for entry in all.iter().take(FAILURES) {
        let message = outcome_text(&entry.outcome).unwrap_or_default();
        let (expected, actual) = match FailureText::of(message) {
            Some(failure) => (cell(&failure.expected), cell(&failure.seen)),
            None => (String::new(), cell(message)),
        };
        let word = outcome_word(&entry.outcome);
        let (id, level) = (&entry.id, entry.level);
        put!(text, "| **{id}** {} | {level} | {word} | {expected} | {actual} |", cell(&entry.title));
    }
    if all.len() > FAILURES {
        put!(text, "\nand {} more: see the report", all.len() - FAILURES);
    }
    let shown = all.len().min(FAILURES);
    put!(text, "\n<details><summary>Details of {}</summary>\n", count(shown, "problem"));
    for entry in all.iter().take(FAILURES) {
        let message = printable(outcome_text(&entry.outcome).unwrap_or_default());
        let whole: String = message.chars().take(TEXT).collect();
        put!(text, "**{}**\n\n<pre>{}</pre>\n", entry.id, markup(&whole));
    }
    put!(text, "</details>");
}

/// The checks that keep the result from being complete, by reason.
fn left_unjudged(ledger: &Ledger, text: &mut String) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for entry in unjudged(ledger).filter(|entry| matches!(entry.outcome, Outcome::Skip { .. })) {
        let detail = outcome_text(&entry.outcome).unwrap_or_default();
        let why = format!("{}: {}", outcome_word(&entry.outcome).replace('-', " "), cell(detail));
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(&entry.id),
            None => reasons.push((why, vec![&entry.id])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    let all = reasons.iter().map(|(_, ids)| ids.len()).sum();
    put!(text, "\n<details><summary>{} not judged</summary>\n", count(all, "check"));
    for (why, ids) in reasons {
        put!(text, "- {why}: {}", ids.join(", "));
    }
    put!(text, "\n</details>");
}

/// Every check that ran, folded.
fn checks_that_ran(ledger: &Ledger, text: &mut String) {
    let ran: Vec<&Entry> = ledger.all().filter(|entry| entry.duration_ms > 0).collect();
    if ran.is_empty() {
        return;
    }
    put!(text, "\n<details><summary>{} ran</summary>\n", count(ran.len(), "check"));
    put!(text, "| check | result | level | took | claim |\n|---|---|---|---:|---|");
    for entry in ran {
        let (word, took) = (outcome_word(&entry.outcome), human_duration(entry.duration_ms));
        put!(text, "| {} | {word} | {} | {took} | {} |", entry.id, entry.level, cell(&entry.title));
    }
    put!(text, "\n</details>");
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A text, escaped for markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, level: Level, outcome: Outcome) -> Entry {
        Entry { title: "a claim, with | and <b>".to_owned(), ..Entry::sample(id, level, outcome) }
    }

    fn failed(id: &str, level: Level) -> Entry {
        let message = "expected:  <x>\nlast seen: y|z\npromise:   p";
        entry(id, level, Outcome::Fail { message: message.to_owned() })
    }

    fn ledger() -> Ledger {
        let entries = vec![
            failed("A-01", Level::Must),
            failed("A-02", Level::Should),
            entry("A-03", Level::Must, Outcome::Pass),
        ];
        Ledger {
            entries,
            started: "2026-11-25T22:43:10Z".to_owned(),
            duration_ms: 1_026_000,
            ..Ledger::default()
        }
    }

    #[test]
    fn failures_are_in_the_summary_with_the_expected_state() {
        let job =
            Job { run: Some("https://ci.example/1".to_owned()), results: "out".to_owned(), ..Job::default() };
        let summary = step_summary(&ledger(), &job);
        assert!(summary.starts_with("## ❌ not conformant: "), "{summary}");
        assert!(summary.contains("1 of 2 applicable MUST checks passed."), "{summary}");
        assert!(summary.contains("started 2026-11-25 22:43 UTC · took 17 min 6 s"), "{summary}");
        assert!(summary.contains("[Artifacts of this run](https://ci.example/1#artifacts)"), "{summary}");
        assert!(summary.contains("| | pass | fail |\n|---|---:|---:|\n| MUST | 1 | 1 |"), "{summary}");
        let row = "| **A-02** a claim, with \\| and &lt;b&gt; | SHOULD | fail | &lt;x&gt; | y\\|z |";
        assert!(summary.contains(row), "{summary}");
        assert!(summary.contains("<pre>expected:  &lt;x&gt;\nlast seen: y|z"), "{summary}");
        assert!(summary.contains("<summary>3 checks ran</summary>"), "{summary}");
        assert!(summary.contains("| A-03 | pass | MUST | 1 ms |"), "{summary}");
    }

    #[test]
    fn many_failures_leave_the_rest_to_the_report() {
        let entries = (0..FAILURES + 3).map(|n| failed(&format!("B-{n:02}"), Level::Must)).collect();
        let summary = step_summary(&Ledger { entries, ..Ledger::default() }, &Job::default());
        assert!(summary.contains("and 3 more: see the report"), "{summary}");
        assert!(!summary.contains("Artifacts"), "{summary}");
    }

    #[test]
    fn checks_that_were_not_judged_are_folded_by_reason() {
        let skip = |id: &str| {
            let detail = "served from 1.21 on".to_owned();
            entry(id, Level::Must, Outcome::Skip { reason: SkipReason::NotObservable, detail })
        };
        let entries = vec![entry("A-01", Level::Must, Outcome::Pass), skip("A-02"), skip("A-03")];
        let summary = step_summary(&Ledger { entries, ..Ledger::default() }, &Job::default());
        assert!(summary.contains("<summary>2 checks not judged</summary>"), "{summary}");
        assert!(summary.contains("- not observable: served from 1.21 on: A-02, A-03"), "{summary}");
    }

    #[test]
    fn an_environment_that_did_not_come_up_is_said() {
        let environment_error = Some("no Docker".to_owned());
        let summary = step_summary(&Ledger { environment_error, ..Ledger::default() }, &Job::default());
        assert!(
            summary.contains("not judged") && summary.contains("did not come up: no Docker"),
            "{summary}"
        );
    }
}
