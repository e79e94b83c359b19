//! The profile's manifests as they are written, checked against the rows of the contract that concern only them.

use super::CheckCx;
use bootstrap::Level;
use harness_core::check::{CheckError, Verdict};
use harness_session::manifest_findings;

impl CheckCx {
    /// Verifies that the lint finds nothing in the manifests that breaks this row. SHOULD findings count only if the row
    /// itself is a SHOULD (`should`).
    ///
    /// # Errors
    /// [`CheckError::Violation`] with each place and what is wrong there; [`CheckError::Error`] for manifests that cannot
    /// be read.
    pub fn manifests_follow(&self, row: &str, should: bool) -> Verdict {
        let plan = self.session.plan();
        let promise = format!("the manifests follow {row}");
        let Some(said) = manifest_findings(&plan.profile, plan.cluster.desired()) else {
            return Err(CheckError::violation(promise, "manifests of a CCM", "the profile deploys none"));
        };
        let findings = said.map_err(CheckError::Error)?;
        let counts = |level: Level| level == Level::Must || should && level == Level::Should;
        let broken: Vec<String> = findings
            .iter()
            .filter(|finding| finding.id == row && counts(finding.level))
            .map(|finding| format!("{}: {}: {}", finding.at(), finding.what, finding.why))
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        let expected =
            format!("no finding of {row} ('ccm-conformance bootstrap check' shows how to fix one)");
        Err(CheckError::violation(promise, expected, broken.join("; ")))
    }
}
