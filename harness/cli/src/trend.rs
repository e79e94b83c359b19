//! `trend`: what changed over many runs of one CCM.

use super::arguments::{ListOutput, TrendOptions};
use super::compare::read;
use super::report_file::report_at;
use harness_core::output;
use harness_report::{exit, trend as trend_of};
use std::process::ExitCode;

/// Prints the runs and the checks that changed. Exit codes: 0 whatever changed, 2 for reports that cannot be read or are of
/// different CCMs.
pub(super) fn trend(options: &TrendOptions) -> ExitCode {
    match printed(options) {
        Ok(text) => {
            match options.output {
                ListOutput::Text => output::out_wrapped(&text),
                ListOutput::Json => output::out(&text),
            }
            ExitCode::from(exit::CONFORMANT)
        }
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

fn printed(options: &TrendOptions) -> Result<String, String> {
    let mut runs = Vec::new();
    for path in &options.reports {
        let report = report_at(path);
        runs.push((report.display().to_string(), read(&report)?));
    }
    let trend = trend_of(runs)?;
    match options.output {
        ListOutput::Text => Ok(trend.to_string()),
        ListOutput::Json => {
            serde_json::to_string_pretty(&trend).map(|text| text + "\n").map_err(|error| error.to_string())
        }
    }
}
