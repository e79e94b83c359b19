//! `run --kubernetes A,B`: the same checks on several versions.

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccm-conformance"))
        .args(["run", "--cluster", "embedded", "--only", "NODE-INIT-01", "--out"])
        .arg(folder)
        .args(options)
        .env_remove("CCM_CONFORMANCE_CLUSTER")
        .output()
        .expect("the command can be run")
}

#[test]
fn each_version_has_a_report_and_the_page_leads_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--kubernetes", "1.20,1.36"]);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("\n1.20  v1.20.0: partial, 1 of "), "{shown}");
    let page = std::fs::read_to_string(folder.path().join("versions.html")).expect("a page");
    for version in ["1.20", "1.36"] {
        assert!(page.contains(&format!("href=\"{version}/report.html\"")), "{page}");
        let report = std::fs::read_to_string(folder.path().join(version).join("report.yaml"));
        let report = report.expect("a report");
        let repeats = format!("--only NODE-INIT-01 --out {} --kubernetes {version}", folder.path().display());
        assert!(report.contains(&repeats), "{report}");
    }
    let summary = std::fs::read_to_string(folder.path().join("versions.yaml")).expect("a summary");
    assert!(summary.contains("kind: Versions") && summary.contains("differences: []"), "{summary}");
}

#[test]
fn a_wrong_version_is_refused_before_the_first_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for (options, why) in [
        (&["--kubernetes", "1.36,1.99"][..], "1.99"),
        (&["--kubernetes", "1.36,1.36"], "--kubernetes: '1.36' is named twice"),
        (&["--kubernetes", "1.35,1.36", "--repeat", "2"], "--repeat: it needs a single version"),
    ] {
        let output = run(folder.path(), options);
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(shown.contains(why), "{shown}");
        assert!(
            std::fs::read_dir(folder.path()).expect("a folder").next().is_none(),
            "something was written"
        );
    }
}
