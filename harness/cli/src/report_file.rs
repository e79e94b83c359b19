//! Where the report of a run is.

use std::path::{Path, PathBuf};

/// The report in the output folder of a run, and in the folder of a submission.
pub(super) const REPORT_FILE: &str = "report.yaml";

/// The file of a report: the path itself, or the one in the output folder of a run.
pub(super) fn report_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(REPORT_FILE) } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_report_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(report_at(folder.path()), folder.path().join("report.yaml"));
        for other in ["nope", "old/report.yaml"] {
            assert_eq!(report_at(Path::new(other)), Path::new(other));
        }
    }
}
