//! `bootstrap`: lint and model of manifests, which needs nothing of the rest.

use crate::output::{Log, Out};
use ::bootstrap::BootstrapCommand;
use std::io::stdin;
use std::process::ExitCode;

/// Runs the command on the process's own streams.
pub(super) fn run(command: &BootstrapCommand) -> ExitCode {
    ExitCode::from(::bootstrap::run(command, &mut stdin(), &mut Out, &mut Log))
}
