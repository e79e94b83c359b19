//! The folder of a run's results: what of it may be removed.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// The folder of evidence in it.
const EVIDENCE: &str = "evidence";
/// Stands in a folder of evidence that this program has made: such a one it may remove.
const MARKER: &str = ".made-by-ccm-conformance";

/// Makes a folder of results, and an empty one of evidence in it, in place of what an earlier run has put there. What
/// somebody else has put there is not touched.
///
/// # Errors
/// There is a folder of evidence that no run has made; or nothing can be written there.
pub fn make_ready(output: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(output)?;
    let evidence = output.join(EVIDENCE);
    match std::fs::symlink_metadata(&evidence) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(facts) => {
            let marked = std::fs::symlink_metadata(evidence.join(MARKER)).is_ok_and(|mark| mark.is_file());
            let empty = || std::fs::read_dir(&evidence).is_ok_and(|mut entries| entries.next().is_none());
            if !facts.is_dir() || !(marked || empty()) {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!(
                        "{} is there, and no run of this version made it: it would be removed; move it away, or name \
                         another folder with '--out'",
                        evidence.display()
                    ),
                ));
            }
            std::fs::remove_dir_all(&evidence)?;
        }
    }
    std::fs::create_dir(&evidence)?;
    OpenOptions::new().write(true).create_new(true).open(evidence.join(MARKER)).map(drop)
}

/// Removes a folder of evidence in which there is none.
pub(super) fn without_empty_evidence(output: &Path) {
    let evidence = output.join(EVIDENCE);
    let names = std::fs::read_dir(&evidence).into_iter().flatten().flatten().map(|entry| entry.file_name());
    if names.eq([MARKER]) {
        // What cannot be removed is an empty folder with a marker.
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
        std::fs::write(evidence.join("old.txt"), "of an earlier run").expect("a file");
        make_ready(output).expect("it is ours");
        assert!(!evidence.join("old.txt").exists());
        without_empty_evidence(output);
        assert!(!evidence.exists());

        std::fs::create_dir(&evidence).expect("a folder");
        make_ready(output).expect("an empty folder is nobody's loss");
        std::fs::remove_file(evidence.join(MARKER)).expect("the marker");
        std::fs::write(evidence.join("mine.txt"), "the user's").expect("a file");
        let error = make_ready(output).expect_err("it is the user's");
        assert!(error.to_string().contains("move it away"), "{error}");
        without_empty_evidence(output);
        assert!(evidence.join("mine.txt").exists());
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
