//! What a failed check says.

use std::process::Command;

#[test]
fn a_failure_says_if_an_edit_led_to_no_request() {
    // It ignores a change of a Service's node port.
    const DEAF: &str = "M-SV-26b";
    let folder = tempfile::tempdir().expect("a folder");
    let controls = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["controls", "--cluster", "embedded", "--mutant", DEAF, "--out"])
        .arg(folder.path())
        .output()
        .expect("the command can be run");
    assert!(controls.status.success(), "{}", String::from_utf8_lossy(&controls.stdout));
    let report = std::fs::read_to_string(folder.path().join(DEAF).join("report.yaml")).expect("a report");
    assert!(report.contains("no request since the edit"), "{report}");
}
