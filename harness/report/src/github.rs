//! What GitHub Actions shows of a run: annotations next to the log and in manifests, and a summary on the job's page.

mod annotations;
mod job_summary;

pub use annotations::annotations;
pub use job_summary::step_summary;

use super::wording::one_line;
use harness_core::ledger::{Entry, Ledger, Outcome};

/// The job that runs the program: what links and places in files are made of.
#[derive(Debug, Default)]
pub struct Job {
    /// Folder of the checkout, in which annotations name their files.
    pub workspace: Option<String>,
    /// Folder from which the program was started: paths of manifests are relative to it.
    pub folder: String,
    /// Address of the workflow run, which has the artifact with the results.
    pub run: Option<String>,
    /// Folder with the results.
    pub results: String,
}

fn troubled(ledger: &Ledger) -> impl Iterator<Item = &Entry> {
    ledger.entries.iter().filter(|entry| is_trouble(entry))
}

fn is_trouble(entry: &Entry) -> bool {
    !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. })
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
