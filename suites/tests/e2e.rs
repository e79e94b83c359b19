//! `cargo test --test e2e`: the same run through the arguments of an ordinary Rust test.

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::cli::test_main(suites::ALL)
}
