//! Output for GitHub Actions: annotations in its log, and a summary on the job's page.

use harness_core::events::Events;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{annotations, step_summary};
use std::fs::OpenOptions;
use std::io::Write as _;

/// Writes the annotations, and appends the summary to the file that GitHub names. Does nothing outside of GitHub Actions.
/// Source: "Default environment variables" and "Workflow commands" of GitHub Actions.
pub fn tell_github(ledger: &Ledger, events: &Events) {
    if std::env::var_os("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return;
    }
    output::workflow_commands(&annotations(ledger));
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|name| !name.is_empty()) else { return };
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    if let Err(why) = opened.and_then(|mut opened| opened.write_all(step_summary(ledger).as_bytes())) {
        events.say(format!("error: the job's summary {} could not be written: {why}", file.display()));
    }
}
