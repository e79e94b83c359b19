//! What GitHub Actions shows of a run: annotations beside the log, and a summary on the job's page.

use super::wording::{one_line, outcome_text, outcome_word, verdict_word};
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger, Outcome};
use std::fmt::Write as _;

/// How many annotations of each kind are made: GitHub shows no more of one step.
const ANNOTATIONS: usize = 10;
/// How many rows the summary's table has at most.
const ROWS: usize = 100;

/// Workflow commands that annotate the run: what failed as an error, what only warns as a warning. Each is a line.
/// Source: "Workflow commands for GitHub Actions", setting an error message.
pub fn annotations(ledger: &Ledger) -> String {
    let mut text = String::new();
    for (command, level) in [("error", Level::Must), ("warning", Level::Should)] {
        let of_level = troubled(ledger).filter(|entry| entry.level == level);
        for entry in of_level.take(ANNOTATIONS) {
            let title = property(&format!("{} {}", entry.id, outcome_word(&entry.outcome)));
            let why = outcome_text(&entry.outcome).unwrap_or_default();
            let _ =
                writeln!(text, "::{command} title={title}::{}", message(&format!("{}\n{why}", entry.title)));
        }
    }
    for entry in ledger.private.iter().filter(|entry| is_trouble(entry)).take(ANNOTATIONS) {
        let title = property(&format!("private check {} {}", entry.id, outcome_word(&entry.outcome)));
        let why = outcome_text(&entry.outcome).unwrap_or_default();
        let _ = writeln!(text, "::warning title={title}::{}", message(&format!("{}\n{why}", entry.title)));
    }
    if let Some(error) = &ledger.environment_error {
        let _ = writeln!(text, "::error title=environment::{}", message(error));
    }
    text
}

/// The job's summary, in GitHub's Markdown.
pub fn step_summary(ledger: &Ledger) -> String {
    let subject = &ledger.subject;
    let mut text = format!(
        "## {}: {}\n\n",
        cell(&subject.profile),
        verdict_word(ledger.conformance()).replace('-', " ")
    );
    let _ = writeln!(
        text,
        "Kubernetes {} on {}, {} checks\n",
        cell(&subject.kubernetes_version),
        cell(&subject.backend),
        ledger.entries.len()
    );
    if let Some(error) = &ledger.environment_error {
        let _ = writeln!(text, "The environment did not come up: {}\n", cell(error));
    }
    for explanation in &ledger.explanations {
        let _ = writeln!(text, "- {}", cell(explanation));
    }
    let _ = writeln!(text, "\n| | pass | fail | blocked | error | others |\n|---|---|---|---|---|---|");
    for level in [Level::Must, Level::Should, Level::Info] {
        let count = |word: &str| {
            let of = ledger.entries.iter().filter(|entry| entry.level == level);
            of.filter(|entry| outcome_word(&entry.outcome) == word).count()
        };
        let [pass, fail, blocked, error] = ["pass", "fail", "blocked", "error"].map(count);
        let all = ledger.entries.iter().filter(|entry| entry.level == level).count();
        let others = all - pass - fail - blocked - error;
        let _ = writeln!(text, "| {level} | {pass} | {fail} | {blocked} | {error} | {others} |");
    }
    let rows: Vec<&Entry> = troubled(ledger).collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "\n| check | level | | claim | why |\n|---|---|---|---|---|");
    }
    for entry in rows.iter().take(ROWS) {
        let why = cell(outcome_text(&entry.outcome).unwrap_or_default());
        let word = outcome_word(&entry.outcome);
        let _ =
            writeln!(text, "| {} | {} | {word} | {} | {why} |", entry.id, entry.level, cell(&entry.title));
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "\nand {} more: see the report", rows.len() - ROWS);
    }
    text
}

fn troubled(ledger: &Ledger) -> impl Iterator<Item = &Entry> {
    ledger.entries.iter().filter(|entry| is_trouble(entry))
}

fn is_trouble(entry: &Entry) -> bool {
    !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. })
}

/// A text within a workflow command.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a command's property.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// A text within a table, on one line and nothing but text.
fn cell(text: &str) -> String {
    let mut clean = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            // Everything that Markdown gives a meaning.
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '@' => {
                clean.push('\\');
                clean.push(c);
            }
            _ => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, level: Level, outcome: Outcome) -> Entry {
        Entry { title: "a claim, with | and <b>".to_owned(), ..Entry::sample(id, level, outcome) }
    }

    #[test]
    fn what_failed_is_annotated_and_stands_in_the_summary() {
        let fail = || Outcome::Fail { message: "promise: 100 %\nexpected: x".to_owned() };
        let mut entries = vec![
            entry("A-01", Level::Must, fail()),
            entry("A-02", Level::Should, fail()),
            entry("A-03", Level::Must, Outcome::Pass),
        ];
        entries.extend((0..20).map(|n| entry(&format!("B-{n:02}"), Level::Must, fail())));
        let ledger = Ledger { entries, ..Ledger::default() };
        let said = annotations(&ledger);
        assert!(said.starts_with(
            "::error title=A-01 fail::a claim, with | and <b>%0Apromise: 100 %25%0Aexpected: x\n"
        ));
        assert!(said.contains("\n::warning title=A-02 fail::"));
        assert_eq!(said.lines().count(), ANNOTATIONS + 1);
        let summary = step_summary(&ledger);
        assert!(summary.contains("| MUST | 1 | 21 | 0 | 0 | 0 |"), "{summary}");
        assert!(summary.contains("| A-02 | SHOULD | fail | a claim, with \\| and &lt;b&gt; |"), "{summary}");
        assert!(!summary.contains("A-03"));
    }

    #[test]
    fn an_environment_that_did_not_come_up_is_an_error() {
        let error = Some("no Docker:\nstart it".to_owned());
        let ledger = Ledger { environment_error: error, ..Ledger::default() };
        assert_eq!(annotations(&ledger), "::error title=environment::no Docker:%0Astart it\n");
        assert!(step_summary(&ledger).contains("not judged"));
    }
}
