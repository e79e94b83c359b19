//! Where the report of a run is.

use std::path::{Path, PathBuf};

/// The report in the output folder of a run, and in the folder of a submission.
pub(super) const REPORT_FILE: &str = "report.yaml";

/// The file of a report: the path itself, or the one in the output folder of a run.
pub(super) fn report_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(REPORT_FILE) } else { path.to_owned() }
}

/// The report next to another file of the same run, such as its page. A YAML file is meant to be a report itself.
pub(super) fn report_next_to(path: &Path) -> Option<PathBuf> {
    let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let report = path.with_file_name(REPORT_FILE);
    (report != path && !is_yaml && report.is_file()).then_some(report)
}

/// That a file is not a report, although there is one next to it.
pub(super) fn not_a_report(path: &Path, report: &Path) -> String {
    format!("{}: not a report; that of this run is {}", path.display(), report.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_the_report_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(report_at(folder.path()), folder.path().join("report.yaml"));
        let (page, report) = (folder.path().join("report.html"), folder.path().join("report.yaml"));
        assert_eq!(report_next_to(&page), None);
        std::fs::write(&report, "").expect("a file");
        assert_eq!((report_next_to(&page), report_next_to(&report)), (Some(report.clone()), None));
        assert_eq!(report_next_to(&folder.path().join("copy.yaml")), None);
        for other in ["nope", "old/report.yaml"] {
            assert_eq!(report_at(Path::new(other)), Path::new(other));
        }
    }
}
