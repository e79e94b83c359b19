//! `ccm-conformance`: judges a cloud controller manager on a cluster made for the purpose.

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::cli::main(suites::ALL)
}
