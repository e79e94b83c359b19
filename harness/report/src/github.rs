//! Output for GitHub Actions: annotations next to the log and in manifests, and a summary on the job's page.

mod annotations;
mod job_summary;

pub use annotations::annotations;
pub use job_summary::step_summary;

use super::wording::one_line;
use harness_core::ledger::{Entry, Ledger, Outcome};

/// The job that runs the program, for links and locations in files.
#[derive(Debug, Default)]
pub struct Job {
    /// Folder of the checkout: annotations name files relative to it.
    pub workspace: Option<String>,
    /// Folder from which the program was started: paths of manifests are relative to it.
    pub folder: String,
    /// URL of the workflow run, which has the artifact with the results.
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

/// A text for a table cell: one line, without markup.
fn cell(text: &str) -> String {
    let mut clean = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            // All characters with a meaning in Markdown.
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '@' => {
                clean.push('\\');
                clean.push(c);
            }
            _ => clean.push(c),
        }
    }
    clean
}
