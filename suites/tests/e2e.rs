//! `cargo test --test e2e`: the same run with the arguments of an ordinary Rust test.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    harness_cli::test_main(suites::ALL, Path::new(env!("CARGO_BIN_EXE_ccm-conformance")), package)
}
