//! Compares the boot model with embedded clusters, in a part of the table that contains every kind of cycle;
//! `ccm-conformance bootstrap prove` measures the whole table.

use std::process::Command;

/// Correct manifests, the contract's mutants that deadlock, the specification's example as printed and
/// corrected, and a fault that a vendor has shipped.
const CASES: &[&str] = &[
    "good-deployment",
    "mbt-01-no-uninitialized-toleration",
    "mbt-02-toleration-without-operator",
    "mbt-03-no-control-plane-toleration",
    "mbt-04-no-not-ready-toleration",
    "mbt-05-no-host-network",
    "mbt-06-cluster-dns",
    "mbt-07-host-ip",
    "mbt-11-selector-without-node",
    "seed-example",
    "seed-example-mended",
    "effect-no-execute",
];

#[test]
fn model_and_embedded_clusters_agree() {
    let cases = CASES.iter().flat_map(|case| ["--case", case]);
    let output = Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["bootstrap", "prove", "--topology", "control-plane-and-worker"])
        .args(["--cni", "none,independent,waits-for-addresses", "--jobs", "36"])
        .args(cases)
        .output()
        .expect("the command can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    let printed = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let cells = CASES.len() * 3;
    let expected = format!("{cells} cells: {cells} agree, 0 disagree, 0 not observable, 0 failed");
    assert!(text.contains(&expected), "{printed}");
    assert_eq!(output.status.code(), Some(0), "{printed}");
    // Both outcomes occur, so that the agreement means something.
    let both = |outcome: &str| text.lines().filter(|line| line.matches(outcome).count() == 2).count();
    assert!(both("boots") > 5 && both("does not boot") > 10, "{printed}");
}
