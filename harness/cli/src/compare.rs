//! `compare`: the changes between two reports, as lines and as a page.

use super::arguments::{CompareOptions, ListOutput};
use super::report_file::{not_a_report, report_at, report_next_to};
use harness_core::check::chain;
use harness_core::events::{self, Event, Fold};
use harness_core::files;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{Change, Difference, PageMaterial, Side, exit, parse, to_comparison};
use harness_runner::{demands, material};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Prints the checks whose outcome differs, the worse ones first, and writes the page. Exit codes: 0 none is worse, 1 some
/// are, 2 a report cannot be read or the page cannot be written.
pub(super) fn compare(options: &CompareOptions) -> ExitCode {
    let (before, after) = match (read(&options.before), read(&options.after)) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => {
            for why in [before.err(), after.err()].into_iter().flatten() {
                output::err(&format!("error: {why}"));
            }
            return ExitCode::from(exit::USAGE);
        }
    };
    let mut differences = harness_report::compare(&before, &after);
    // What one of the runs was not asked for has not changed.
    let all = differences.len();
    differences.retain(|one| !one.is_of_selection());
    let left_out = all - differences.len();
    if options.judged {
        differences.retain(Difference::is_of_judged);
    }
    let comparison = Comparison { sides: [&before, &after], differences: &differences, left_out };
    match options.output {
        ListOutput::Text => output::out_wrapped(&comparison.as_text()),
        ListOutput::Json => output::out(&comparison.as_json()),
    }
    if let Some(path) = &options.html {
        let sides = [(options.before.as_path(), &before), (options.after.as_path(), &after)];
        if let Err(why) = page(sides, &differences).and_then(|page| write(path, page)) {
            output::err(&format!("error: --html {}: {why}", path.display()));
            return ExitCode::from(exit::USAGE);
        }
        output::err(&format!("wrote {}", path.display()));
    }
    let is_worse = !comparison.of(Change::Worse).is_empty();
    ExitCode::from(if is_worse { exit::NOT_CONFORMANT } else { exit::CONFORMANT })
}

/// Two runs and what differs between them.
struct Comparison<'a> {
    sides: [&'a Ledger; 2],
    differences: &'a [Difference],
    /// Checks that one of the runs was not asked for.
    left_out: usize,
}

impl Comparison<'_> {
    fn of(&self, change: Change) -> Vec<&Difference> {
        self.differences.iter().filter(|one| one.change() == change).collect()
    }

    fn as_text(&self) -> String {
        let mut text = String::new();
        let groups = [(Change::Worse, "Worse"), (Change::Better, "Better"), (Change::Other, "Other")];
        for (change, head) in groups {
            let found = self.of(change);
            if !found.is_empty() {
                text.push_str(&format!("{head}\n"));
                found.iter().for_each(|one| text.push_str(&format!("  {one}\n")));
                text.push('\n');
            }
        }
        let [before, after] = self.sides;
        let count = before.entries.len().max(after.entries.len());
        let [worse, better, other] = groups.map(|(change, _)| self.of(change).len());
        text.push_str(&format!(
            "{worse} worse, {better} better, {other} other of {count} checks ({} -> {})\n",
            about(before),
            about(after)
        ));
        if self.left_out > 0 {
            text.push_str(&format!("checks that one of the runs left out: {}\n", self.left_out));
        }
        text
    }

    fn as_json(&self) -> String {
        let group = |change| self.of(change);
        let value = json!({
            "before": about(self.sides[0]), "after": about(self.sides[1]), "leftOut": self.left_out,
            "worse": group(Change::Worse), "better": group(Change::Better), "other": group(Change::Other),
        });
        format!("{value:#}\n")
    }
}

fn write(path: &Path, page: String) -> Result<(), String> {
    output::file(path, page).map_err(|error| files::why(&error))
}

/// The page of both runs.
fn page(sides: [(&Path, &Ledger); 2], differences: &[Difference]) -> Result<String, String> {
    let [before, after] =
        sides.map(|(path, ledger)| (path.display().to_string(), ledger, page_material(path, ledger)));
    let demands = demands(&[before.1, after.1])?;
    let [before, after] = [&before, &after].map(|(name, ledger, material)| Side { name, ledger, material });
    to_comparison(&[before, after], &demands, differences).map_err(|error| chain(&error))
}

/// The files next to a report; none if they belong to another run.
fn page_material(report: &Path, ledger: &Ledger) -> PageMaterial {
    let stream = events::stream_in(report_at(report).parent().unwrap_or(Path::new("")));
    let is_of_it =
        |events: &[Event]| ledger.stream.is_some() && Fold::of(events).ledger().stream == ledger.stream;
    match events::read(&stream) {
        Ok(events) if is_of_it(&events) => material(ledger, &stream).unwrap_or_default(),
        Ok(_) => {
            let stream = stream.display();
            output::err(&format!(
                "warning: {stream} is of another run: the page does not show what happened"
            ));
            PageMaterial::default()
        }
        Err(_) => {
            let stream = stream.display();
            output::err(&format!("warning: {stream} cannot be read: the page does not show what happened"));
            PageMaterial::default()
        }
    }
}

/// The report at a path.
pub(super) fn read(path: &Path) -> Result<Ledger, String> {
    let path = &report_at(path);
    let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text, path).map_err(|error| match report_next_to(path) {
        Some(report) => not_a_report(path, &report),
        None => chain(&error),
    })
}

/// A short description of a report's subject.
fn about(ledger: &Ledger) -> String {
    let subject = &ledger.subject;
    format!("{} on {} {}", subject.profile, subject.backend, subject.kubernetes_version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::{Entry, Outcome, SkipReason};

    #[test]
    fn regressions_come_first_and_deselected_checks_are_only_counted() {
        let fail = || Outcome::Fail { message: "m".to_owned() };
        let ledger = |outcomes: [Outcome; 3]| {
            let entries = ["A-01", "A-02", "A-03"].into_iter().zip(outcomes);
            let entries = entries.map(|(id, outcome)| Entry::sample(id, Level::Must, outcome)).collect();
            Ledger { entries, ..Ledger::default() }
        };
        let deselected = Outcome::Skip { reason: SkipReason::Deselected, detail: "d".to_owned() };
        let (before, after) =
            (ledger([fail(), Outcome::Pass, Outcome::Pass]), ledger([Outcome::Pass, fail(), deselected]));
        let mut differences = harness_report::compare(&before, &after);
        differences.retain(|one| !one.is_of_selection());
        let comparison = Comparison { sides: [&before, &after], differences: &differences, left_out: 1 };
        let text = comparison.as_text();
        assert!(text.starts_with("Worse\n  A-02: pass -> fail\n\nBetter\n  A-01: fail -> pass\n"), "{text}");
        assert!(text.contains("\n1 worse, 1 better, 0 other of 3 checks ("), "{text}");
        assert!(text.ends_with("checks that one of the runs left out: 1\n"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&comparison.as_json()).expect("JSON");
        assert_eq!((&value["worse"][0]["id"], &value["leftOut"]), (&json!("A-02"), &json!(1)));
    }
}
