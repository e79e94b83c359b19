//! The folder of a run's results, and what may be removed from it.

use harness_core::events::{EVENTS_FILE, PACKED_EVENTS_FILE};
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The files that a run writes at its end.
const REPORTS: [&str; 4] = ["report.html", "report.yaml", "junit.xml", "badge.json"];
/// A text that is in each report of a run.
const MENTIONS: &str = "conformance";
/// The folder of evidence in it.
const EVIDENCE: &str = "evidence";
/// The marker in an evidence folder that this program created and may therefore remove.
const MARKER: &str = ".made-by-ccm-conformance";

/// A report in a folder that no run has written, and that this one would replace.
fn foreign_report(output: &Path) -> Option<PathBuf> {
    if [EVENTS_FILE, PACKED_EVENTS_FILE].iter().any(|name| output.join(name).exists()) {
        return None;
    }
    let is_foreign =
        |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| !text.contains(MENTIONS));
    REPORTS.iter().map(|name| output.join(name)).find(is_foreign)
}

/// Checks that a run may put its results into a folder: what it would replace is from an earlier run. Changes nothing.
///
/// # Errors
/// There is a report or an evidence folder that no run created, or the folder cannot be read.
pub fn may_be_replaced(output: &Path) -> std::io::Result<()> {
    if let Some(report) = foreign_report(output) {
        let why = "was not written by a run, and would be replaced; move it away, or choose another folder with '--out'";
        return Err(Error::new(ErrorKind::AlreadyExists, format!("{} {why}", report.display())));
    }
    let evidence = output.join(EVIDENCE);
    let facts = match std::fs::symlink_metadata(&evidence) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        facts => facts?,
    };
    let marked = std::fs::symlink_metadata(evidence.join(MARKER)).is_ok_and(|mark| mark.is_file());
    let empty = || std::fs::read_dir(&evidence).is_ok_and(|mut entries| entries.next().is_none());
    if facts.is_dir() && (marked || empty()) {
        return Ok(());
    }
    let why = "already exists, was not created by a run of this version, and would be removed; move it away, or choose \
               another folder with '--out'";
    Err(Error::new(ErrorKind::AlreadyExists, format!("{} {why}", evidence.display())))
}

/// Creates a folder for results with an empty evidence folder, and removes the reports and the evidence of an earlier run. Files of the user are
/// not touched.
///
/// # Errors
/// Those of [`may_be_replaced`], or the folder cannot be written.
pub fn make_ready(output: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(output)?;
    may_be_replaced(output)?;
    // If this run is killed, the reports of another one must not look like its own.
    for report in REPORTS {
        match std::fs::remove_file(output.join(report)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let evidence = output.join(EVIDENCE);
    match std::fs::remove_dir_all(&evidence) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir(&evidence)?;
    OpenOptions::new().write(true).create_new(true).open(evidence.join(MARKER)).map(drop)
}

/// Removes an evidence folder without content.
pub(super) fn without_empty_evidence(output: &Path) {
    let evidence = output.join(EVIDENCE);
    let names = std::fs::read_dir(&evidence).into_iter().flatten().flatten().map(|entry| entry.file_name());
    if names.eq([MARKER]) {
        // If it cannot be removed, an empty folder with a marker stays.
        let _ = std::fs::remove_dir_all(evidence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_evidence_of_a_run_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (output, evidence) = (folder.path(), folder.path().join(EVIDENCE));
        make_ready(output).expect("nothing is there");
        let report = output.join("report.yaml");
        std::fs::write(&report, "conformance: partial").expect("written");
        make_ready(output).expect("an earlier run");
        assert!(!report.exists(), "it is not a report of this run");
        std::fs::write(evidence.join("old.txt"), "of an earlier run").expect("a file");
        make_ready(output).expect("it is ours");
        assert!(!evidence.join("old.txt").exists());
        without_empty_evidence(output);
        assert!(!evidence.exists());

        std::fs::create_dir(&evidence).expect("a folder");
        make_ready(output).expect("an empty folder may be overwritten");
        std::fs::remove_file(evidence.join(MARKER)).expect("the marker");
        std::fs::write(evidence.join("mine.txt"), "the user's").expect("a file");
        let error = make_ready(output).expect_err("it is the user's");
        assert!(error.to_string().contains("move it away"), "{error}");
        without_empty_evidence(output);
        assert!(evidence.join("mine.txt").exists());
    }

    #[test]
    fn a_foreign_report_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report.html");
        std::fs::write(&report, "<p>Sales of March</p>").expect("a file");
        let error = make_ready(folder.path()).expect_err("it is the user's");
        assert!(error.to_string().contains("was not written by a run"), "{error}");
        std::fs::write(&report, "<title>ccm-conformance</title>").expect("a file");
        make_ready(folder.path()).expect("a run's, whose stream was removed");
    }

    #[test]
    fn a_link_in_place_of_the_evidence_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let elsewhere = folder.path().join("elsewhere");
        make_ready(&elsewhere).expect("a folder");
        let output = folder.path().join("output");
        std::fs::create_dir(&output).expect("a folder");
        std::os::unix::fs::symlink(elsewhere.join(EVIDENCE), output.join(EVIDENCE)).expect("a link");
        assert!(make_ready(&output).is_err());
        assert!(elsewhere.join(EVIDENCE).join(MARKER).exists());
    }
}
