//! Paths of evidence as a person can open them. In reports they are relative to the output folder, which can be moved; on the
//! terminal they have to work from the working directory.

use harness_core::ledger::{Entry, Ledger};
use std::path::Path;

/// The entry with its evidence as a path through the output folder of its run.
pub(super) fn with_openable_path(entry: &Entry, output: &Path) -> Entry {
    let evidence = entry.evidence.as_ref().map(|relative| output.join(relative).display().to_string());
    Entry { evidence, ..entry.clone() }
}

/// The ledger with all evidence as paths through the output folder of its run: to be shown, not to be written.
pub fn with_openable_evidence(ledger: &Ledger, output: &Path) -> Ledger {
    let mut ledger = ledger.clone();
    for entry in ledger.entries.iter_mut().chain(&mut ledger.private) {
        *entry = with_openable_path(entry, output);
    }
    ledger
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Level;
    use harness_core::ledger::Outcome;

    #[test]
    fn evidence_is_named_by_a_path_that_can_be_opened() {
        let failed = || Entry::sample("A-01", Level::Must, Outcome::Fail { message: String::new() });
        let with = Entry { evidence: Some("evidence/A-01".to_owned()), ..failed() };
        let ledger =
            Ledger { entries: vec![with.clone(), failed()], private: vec![with], ..Ledger::default() };
        let shown = with_openable_evidence(&ledger, Path::new("results"));
        let paths: Vec<_> = shown.all().map(|entry| entry.evidence.as_deref()).collect();
        assert_eq!(paths, [Some("results/evidence/A-01"), None, Some("results/evidence/A-01")]);
        assert_eq!(
            ledger.entries[0].evidence.as_deref(),
            Some("evidence/A-01"),
            "the report does not change"
        );
    }
}
