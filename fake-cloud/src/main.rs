//! The fake cloud as a program of its own, without the harness; `ccm-conformance fake-cloud` is the same command.

use std::process::ExitCode;

fn main() -> ExitCode {
    fake_cloud::main(std::env::args_os())
}
