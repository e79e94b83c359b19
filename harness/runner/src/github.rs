//! Output for GitHub Actions: annotations in its log, and a summary on the job's page.

use harness_core::events::Events;
use harness_core::files;
use harness_core::ledger::Ledger;
use harness_core::output;
use harness_report::{GithubJob, annotations, step_summary};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Writes the annotations, and adds the summary to the file that GitHub names; elsewhere nothing, unless `annotates`.
/// `results` is the folder with the reports. Source: "Default environment variables" and "Workflow commands" of GitHub Actions.
pub fn tell_github(ledger: &Ledger, results: &Path, events: &Events, annotates: bool) {
    if !annotates && variable("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return;
    }
    let job = job(results);
    output::workflow_commands(&annotations(ledger, &job));
    let Some(file) = variable("GITHUB_STEP_SUMMARY") else { return };
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    if let Err(error) = opened.and_then(|mut opened| opened.write_all(step_summary(ledger, &job).as_bytes()))
    {
        let why = files::why(&error);
        events.say(format!("error: the job's summary {file} could not be written: {why}"));
    }
}

/// The job as GitHub's variables describe it.
fn job(results: &Path) -> GithubJob {
    let run = || {
        let [server, repository, run] =
            ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(variable);
        Some(format!("{}/{}/actions/runs/{}", server?, repository?, run?))
    };
    GithubJob {
        workspace: variable("GITHUB_WORKSPACE"),
        folder: std::env::current_dir().unwrap_or_default().display().to_string(),
        run: run(),
        results: results.display().to_string(),
    }
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
