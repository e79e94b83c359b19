//! `compare`: what changed between two reports.

use super::arguments::CompareOptions;
use crate::check::chain;
use crate::files;
use crate::ledger::Ledger;
use crate::output;
use crate::report::{self, Difference, exit, parse};
use std::path::Path;
use std::process::ExitCode;

/// Prints each check whose outcome differs. Exit codes: 0 none, 1 some, 2 a report cannot be read.
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
    let mut differences = report::compare(&before, &after);
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
    ExitCode::from(if differences.is_empty() { exit::CONFORMANT } else { exit::NOT_CONFORMANT })
}

/// The report in a file.
pub(super) fn read(path: &Path) -> Result<Ledger, String> {
    let text = files::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text, path).map_err(|error| chain(&error))
}

/// What a report is of, in a few words.
fn about(ledger: &Ledger) -> String {
    let subject = &ledger.subject;
    format!("{} on {} {}", subject.profile, subject.backend, subject.kubernetes_version)
}
