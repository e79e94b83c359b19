//! `cargo xtask` answers `--help` and `--version`, like every program of the project (`suites/tests/help.rs`).

use std::process::Command;

#[test]
fn help_and_version_are_answered() {
    for (asked, expected) in [("--help", "Usage: xtask <COMMAND>"), ("--version", env!("CARGO_PKG_VERSION"))]
    {
        let output =
            Command::new(env!("CARGO_BIN_EXE_xtask")).arg(asked).output().expect("the program can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(expected), "{asked}: {} {said}", output.status);
    }
}
