//! The fake cloud on its own, without the harness around it; `ccm-conformance fake-cloud` is the same command.

use std::process::ExitCode;

fn main() -> ExitCode {
    fake_cloud::main(std::env::args_os())
}
