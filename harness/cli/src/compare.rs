//! `compare`: the changes between two reports, as lines and as a page.

use super::arguments::CompareOptions;
use harness_core::check::chain;
use harness_core::events::{self, Event, Fold};
use harness_core::files;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{Difference, PageMaterial, Side, exit, parse, to_comparison};
use harness_runner::{demands, material};
use std::path::Path;
use std::process::ExitCode;

/// Prints each check whose outcome differs, and writes the page. Exit codes: 0 none, 1 some, 2 a report
/// cannot be read, 3 the page cannot be written.
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
    if options.judged {
        differences.retain(Difference::is_of_judged);
    }
    let mut text = String::new();
    for difference in &differences {
        text.push_str(&format!("{difference}\n"));
    }
    let count = before.entries.len().max(after.entries.len());
    text.push_str(&format!(
        "{} of {count} checks ended otherwise ({} -> {})\n",
        differences.len(),
        about(&before),
        about(&after)
    ));
    output::out(&text);
    if let Some(path) = &options.html {
        let sides = [(options.before.as_path(), &before), (options.after.as_path(), &after)];
        if let Err(why) = page(sides, &differences).and_then(|page| write(path, page)) {
            output::err(&format!("error: {} could not be written: {why}", path.display()));
            return ExitCode::from(exit::ENVIRONMENT);
        }
        output::err(&format!("wrote {}", path.display()));
    }
    ExitCode::from(if differences.is_empty() { exit::CONFORMANT } else { exit::NOT_CONFORMANT })
}

fn write(path: &Path, page: String) -> Result<(), String> {
    output::file(path, page).map_err(|error| error.to_string())
}

/// The page of both runs.
fn page(sides: [(&Path, &Ledger); 2], differences: &[Difference]) -> Result<String, String> {
    let [before, after] =
        sides.map(|(path, ledger)| (path.display().to_string(), ledger, told(path, ledger)));
    let demands = demands(&[before.1, after.1])?;
    let [before, after] = [&before, &after].map(|(name, ledger, material)| Side { name, ledger, material });
    to_comparison(&[before, after], &demands, differences).map_err(|error| chain(&error))
}

/// The files next to a report; none if they belong to another run.
fn told(report: &Path, ledger: &Ledger) -> PageMaterial {
    let stream = events::stream_in(report.parent().unwrap_or(Path::new("")));
    let is_of_it =
        |events: &[Event]| ledger.stream.is_some() && Fold::of(events).ledger().stream == ledger.stream;
    match events::read(&stream) {
        Ok(events) if is_of_it(&events) => material(ledger, &stream).unwrap_or_default(),
        Ok(_) => {
            output::err(&format!("{} is of another run: the page tells nothing of it", stream.display()));
            PageMaterial::default()
        }
        Err(_) => {
            output::err(&format!(
                "{} cannot be read: the page does not tell what happened",
                stream.display()
            ));
            PageMaterial::default()
        }
    }
}

/// The report in a file.
pub(super) fn read(path: &Path) -> Result<Ledger, String> {
    let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text, path).map_err(|error| chain(&error))
}

/// A short description of a report's subject.
fn about(ledger: &Ledger) -> String {
    let subject = &ledger.subject;
    format!("{} on {} {}", subject.profile, subject.backend, subject.kubernetes_version)
}
