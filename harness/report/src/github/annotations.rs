//! Workflow commands that annotate a run.

use super::{Job, is_trouble, troubled};
use crate::manifest_findings::{is_about_manifests, manifest_findings};
use crate::wording::{outcome_text, outcome_word};
use harness_core::check::Level;
use harness_core::ledger::{Entry, Ledger};
use std::fmt::Write as _;
use std::path::Path;

/// The maximum number of annotations of each kind: GitHub shows no more for one step.
const ANNOTATIONS: usize = 10;

/// Workflow commands that annotate the run, one for each line: failures are errors, everything else is a warning. Findings in
/// a manifest are annotated at their line.
/// Source: "Workflow commands for GitHub Actions", setting an error message.
pub fn annotations(ledger: &Ledger, job: &Job) -> String {
    let mut text = String::new();
    for (command, level) in [("error", Level::Must), ("warning", Level::Should)] {
        let of_level = troubled(ledger).filter(|entry| entry.level == level);
        for annotation in of_level.flat_map(|entry| of_check(entry, job)).take(ANNOTATIONS) {
            let _ = writeln!(text, "::{command} {annotation}");
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

/// Properties and message of a check's annotations: one for each place in a manifest, or one without a place.
fn of_check(entry: &Entry, job: &Job) -> Vec<String> {
    let title = property(&format!("{} {}", entry.id, outcome_word(&entry.outcome)));
    let why = outcome_text(&entry.outcome).unwrap_or_default();
    let findings = if is_about_manifests(&entry.id) { manifest_findings(why) } else { Vec::new() };
    let mut placed: Vec<String> = Vec::new();
    for finding in findings {
        let Some(file) = in_workspace(&finding.file, job) else { continue };
        let text = message(&format!("{}\n{}", finding.what, entry.title));
        placed.push(format!("file={},line={},title={title}::{text}", property(&file), finding.line));
    }
    if placed.is_empty() {
        placed.push(format!("title={title}::{}", message(&format!("{}\n{why}", entry.title))));
    }
    placed
}

/// The path of a file in the checkout; `None` if it is not in the checkout.
fn in_workspace(file: &str, job: &Job) -> Option<String> {
    let whole = Path::new(&job.folder).join(file);
    let inside = whole.strip_prefix(job.workspace.as_deref()?).ok()?;
    let plain: Vec<_> = inside.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    (!plain.iter().any(|part| part == "..")).then(|| plain.join("/"))
}

/// A text, escaped for a workflow command.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value, escaped for a property of a command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::ledger::Outcome;

    fn entry(id: &str, level: Level, message: &str) -> Entry {
        let outcome = Outcome::Fail { message: message.to_owned() };
        Entry { title: "a claim, with | and <b>".to_owned(), ..Entry::sample(id, level, outcome) }
    }

    fn job() -> Job {
        let workspace = Some("/home/runner/work/acme".to_owned());
        Job { workspace, folder: "/home/runner/work/acme/deploy".to_owned(), ..Job::default() }
    }

    #[test]
    fn failures_are_annotated() {
        let text = "promise: 100 %\nexpected: x";
        let mut entries = vec![entry("A-01", Level::Must, text), entry("A-02", Level::Should, text)];
        entries.extend((0..20).map(|n| entry(&format!("B-{n:02}"), Level::Must, text)));
        let said = annotations(&Ledger { entries, ..Ledger::default() }, &job());
        assert!(said.starts_with(
            "::error title=A-01 fail::a claim, with | and <b>%0Apromise: 100 %25%0Aexpected: x\n"
        ));
        assert!(said.contains("\n::warning title=A-02 fail::"));
        assert_eq!(said.lines().count(), ANNOTATIONS + 1);
    }

    #[test]
    fn a_fault_of_a_manifest_is_annotated_at_its_line() {
        let seen =
            "ccm.yaml:12: no toleration (pods; wait); ./rbac/role.yaml:3: no right; /etc/else.yaml:1: no";
        let failed = entry("BOOT-LINT-10", Level::Must, &format!("expected:  nothing\nlast seen: {seen}"));
        let said = annotations(&Ledger { entries: vec![failed], ..Ledger::default() }, &job());
        let lines: Vec<&str> = said.lines().collect();
        let claim = "%0Aa claim, with | and <b>";
        assert_eq!(
            lines,
            [
                format!(
                    "::error file=deploy/ccm.yaml,line=12,title=BOOT-LINT-10 fail::no toleration (pods; wait){claim}"
                ),
                format!("::error file=deploy/rbac/role.yaml,line=3,title=BOOT-LINT-10 fail::no right{claim}"),
            ]
        );
    }

    #[test]
    fn without_a_place_in_the_checkout_there_is_one_annotation() {
        for seen in ["/etc/else.yaml:1: no", "../../../up.yaml:1: no", "the profile deploys none"] {
            let failed = entry("BOOT-LINT-10", Level::Must, &format!("expected:  x\nlast seen: {seen}"));
            let said = annotations(&Ledger { entries: vec![failed], ..Ledger::default() }, &job());
            assert!(
                said.starts_with("::error title=BOOT-LINT-10 fail::") && said.lines().count() == 1,
                "{said}"
            );
        }
    }

    #[test]
    fn an_environment_that_did_not_come_up_is_an_error() {
        let error = Some("no Docker:\nstart it".to_owned());
        let ledger = Ledger { environment_error: error, ..Ledger::default() };
        assert_eq!(annotations(&ledger, &job()), "::error title=environment::no Docker:%0Astart it\n");
    }
}
