//! The locations in manifests that a failure names.

use super::failure_text::FailureText;

/// The beginning of the ids of checks that read manifests. Their failures contain file and line of each finding.
const OF_MANIFESTS: &str = "BOOT-LINT-";

/// A finding in a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ManifestFinding {
    /// The file, as it was passed to the run.
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: u32,
    /// The description of the finding.
    pub(super) what: String,
}

/// Whether a check reads manifests, so that its failure names lines in them.
pub(super) fn is_about_manifests(check: &str) -> bool {
    check.starts_with(OF_MANIFESTS)
}

/// The findings in the text of a failure: `FILE:LINE: what`, separated by `; `.
pub(super) fn manifest_findings(failure: &str) -> Vec<ManifestFinding> {
    let mut found: Vec<ManifestFinding> = Vec::new();
    let Some(failure) = FailureText::of(failure) else { return found };
    for part in failure.seen.split("; ") {
        match (finding(part), found.last_mut()) {
            (Some(finding), _) => found.push(finding),
            (None, Some(last)) => {
                last.what.push_str("; ");
                last.what.push_str(part);
            }
            (None, None) => {}
        }
    }
    found
}

fn finding(text: &str) -> Option<ManifestFinding> {
    let (place, what) = text.split_once(": ")?;
    let (file, line) = place.rsplit_once(':')?;
    Some(ManifestFinding { file: file.to_owned(), line: line.parse().ok()?, what: what.to_owned() })
}
