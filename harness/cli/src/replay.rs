//! `replay`: writes the reports of a run again, from its stream of events.

use super::arguments::ReplayOptions;
use harness_config::Completeness;
use harness_core::check::chain;
use harness_core::events::{Fold, read, stream_in};
use harness_core::files;
use harness_core::progress::Terminal;
use harness_report::{exit, exit_code, summary};
use harness_runner::{with_openable_evidence, write_reports};
use std::path::Path;
use std::process::ExitCode;

/// Writes report.yaml, junit.xml and report.html as the run did and prints its summary. The exit code is that
/// of the run. A truncated stream gives a report that says so, and that is never conformant.
pub(super) fn replay(options: &ReplayOptions) -> ExitCode {
    let terminal = Terminal::alone();
    // The output folder of a run stands for the stream in it.
    let stream = if options.events.is_dir() { stream_in(&options.events) } else { options.events.clone() };
    let ledger = match read(&stream) {
        Ok(events) => Fold::of(&events).ledger(),
        Err(error) => {
            terminal.say(format!("error: {}", chain(&error)));
            return ExitCode::from(exit::USAGE);
        }
    };
    let same_folder = || stream.parent().unwrap_or(Path::new(".")).to_owned();
    let folder = options.out.clone().unwrap_or_else(same_folder);
    let other = stream_in(&folder);
    let is_other = |other: &Path| other.canonicalize().ok() != stream.canonicalize().ok();
    if other.exists() && is_other(&other) {
        terminal.say(format!(
            "error: --out {}: holds the results of another run; choose another folder",
            folder.display()
        ));
        return ExitCode::from(exit::USAGE);
    }
    if let Err(error) = files::create_folder(&folder) {
        terminal.say(format!("error: --out {}: {error}", folder.display()));
        return ExitCode::from(exit::USAGE);
    }
    let written = write_reports(&folder, &ledger, &stream, &terminal);
    // The evidence stays where the run has put it.
    terminal.say(summary(&with_openable_evidence(&ledger, stream.parent().unwrap_or(Path::new("")))));
    match exit_code(&ledger, Completeness::Optional) {
        exit::CONFORMANT if !written => ExitCode::from(exit::ENVIRONMENT),
        code => ExitCode::from(code),
    }
}
