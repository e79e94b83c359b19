//! What is asked of a run outside of any file, and the plan that comes of it.

use crate::config::{BackendChoice, Given, RunFile, RunPlan, Source, WantedCluster, plan};
use crate::output;
use crate::report::exit;
use crate::run::refuse;
use std::process::ExitCode;
use std::str::FromStr;

/// Environment variable naming the run file for `cargo test --test e2e`.
pub const CONFIG_VARIABLE: &str = "CCM_CONFORMANCE_CONFIG";

/// Environment variable that chooses the cluster where no option does: `auto`, `kind`, `embedded` or `existing`.
pub const CLUSTER_VARIABLE: &str = "CCM_CONFORMANCE_CLUSTER";

/// What the environment says of a run, and what was typed.
///
/// # Errors
/// A variable holds what it cannot.
fn given(typed: RunFile) -> Result<Given, String> {
    let mut environment = RunFile::default();
    if let Some(word) = std::env::var_os(CLUSTER_VARIABLE) {
        let chosen = BackendChoice::from_str(&word.to_string_lossy());
        environment.cluster.backend = Some(chosen.map_err(|why| format!("{CLUSTER_VARIABLE}: {why}"))?);
    }
    Ok(Given { environment, typed, ..Given::default() })
}

/// The plan of what was typed; said, where there is none.
pub(super) fn planned(source: &Source, typed: RunFile) -> Result<RunPlan<WantedCluster>, ExitCode> {
    let given = given(typed).map_err(|why| {
        output::err(&format!("error: {why}"));
        ExitCode::from(exit::USAGE)
    })?;
    plan(source, given).map_err(|problems| refuse(&problems))
}
