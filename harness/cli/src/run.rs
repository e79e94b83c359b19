//! `run`.

use super::arguments::{RunOptions, SharedOptions};
use super::command_line::reproduce;
use super::compare::read;
use super::planning::planned;
use super::repeat::repeat;
use super::sonobuoy;
use super::versions;
use harness_config::RunFile;
use harness_core::ledger::{Ledger, Outcome};
use harness_core::output;
use harness_report::exit;
use harness_runner::{Run, Watch, execute};
use harness_testkit::Suite;
use std::process::ExitCode;
use tokio_util::sync::CancellationToken;

/// `ccm-conformance run`.
pub(super) fn run(suites: &'static [Suite], options: &RunOptions) -> ExitCode {
    if let Some(folder) = &options.sonobuoy_results {
        return sonobuoy::run(folder);
    }
    let asked = &options.shared;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let typed = match typed(asked) {
        Ok(typed) => typed,
        Err(code) => return code,
    };
    if asked.kubernetes().len() > 1 {
        let other = [(options.repetition.repeat.is_some(), "--repeat"), (options.watch, "--watch")];
        if let Some(why) = versions::needs_one(&other) {
            say(&format!("error: {why}"));
            return ExitCode::from(exit::USAGE);
        }
        return versions::on_each(suites, options, &typed, &command);
    }
    match planned(&asked.source(), typed) {
        Err(code) => code,
        Ok(plan) => {
            let mut shown = options.shown(plan.jobs);
            let reproduce = reproduce(&command);
            if let Some(times) = options.repetition.repeat {
                return repeat(suites, &plan, &reproduce, shown, times);
            }
            let watch = if options.watch { Watch::Own } else { Watch::No };
            let cancel = CancellationToken::new();
            let run = Run { suites, plan, reproduce, watch, cancel };
            execute(run, &mut shown)
        }
    }
}

/// What was typed, with the checks that an earlier report names.
pub(super) fn typed(options: &SharedOptions) -> Result<RunFile, ExitCode> {
    let mut typed = options.overrides();
    let Some(report) = &options.failed_from else { return Ok(typed) };
    let ledger = read(report).map_err(|why| {
        say(&format!("error: --failed-from: {why}"));
        ExitCode::from(exit::USAGE)
    })?;
    let ids = not_passed(&ledger);
    if ids.is_empty() {
        say(&format!(
            "error: --failed-from {}: nothing in it failed, was blocked, met an error or was interrupted",
            report.display()
        ));
        return Err(ExitCode::from(exit::NOTHING_SELECTED));
    }
    typed.select.only = Some(ids);
    Ok(typed)
}

/// The checks that failed, were blocked, met an environment error or were interrupted.
pub(super) fn not_passed(ledger: &Ledger) -> Vec<String> {
    let wanted = ledger.all().filter(|entry| !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. }));
    wanted.map(|entry| entry.id.clone()).collect()
}

fn say(line: &str) {
    output::err(line);
}
