//! `doctor`: what this machine can run, what it lacks for the rest, and how to fix that.

mod examination;
mod fix;
mod report;

use super::arguments::{DoctorOptions, ListOutput};
use examination::Examination;
use fix::fix;
use harness_config::BackendKind;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use report::{as_json, as_text};
use std::path::Path;
use std::process::ExitCode;

/// Examines the machine, fixes problems if requested, and prints what works.
pub(super) fn doctor(options: &DoctorOptions) -> ExitCode {
    let clusters: Vec<BackendKind> =
        options.cluster.map_or_else(|| BackendKind::ALL.to_vec(), |one| vec![one]);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::err(&format!("error: cannot start the async runtime: {}", files::why(&error)));
            return ExitCode::from(exit::ENVIRONMENT);
        }
    };
    let mut found = runtime.block_on(Examination::of(&clusters));
    if options.fix {
        let fixed =
            found.remedies().iter().map(|remedy| fix(remedy, Path::new("/proc/sys"))).collect::<Vec<_>>();
        if !fixed.is_empty() {
            found = runtime.block_on(Examination::of(&clusters));
        }
        found.fixed = fixed;
    }
    match options.output {
        ListOutput::Text => output::out_wrapped(&as_text(&found, options.fix)),
        ListOutput::Json => output::out(&as_json(&found)),
    }
    let asked = options.cluster.unwrap_or(BackendKind::Embedded);
    ExitCode::from(if found.works(asked) { exit::CONFORMANT } else { exit::ENVIRONMENT })
}
