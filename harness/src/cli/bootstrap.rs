//! `bootstrap`: lint and model of manifests, which needs nothing of the rest.

use ::bootstrap::BootstrapCommand;
use std::io::{stderr, stdin, stdout};
use std::process::ExitCode;

/// Runs the command on the process's own streams.
pub(super) fn run(command: &BootstrapCommand) -> ExitCode {
    ExitCode::from(::bootstrap::run(command, &mut stdin(), &mut stdout(), &mut stderr()))
}
