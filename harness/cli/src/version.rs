//! The description of this program: its version, its source commit, and its checks.

use harness_runner::golden;
use harness_testkit::Suite;

/// The commit that a released program was built from; `cargo xtask release` passes it to the compiler.
const COMMIT: Option<&str> = option_env!("CCM_CONFORMANCE_COMMIT");

/// Version, commit, and the number and name of the set of checks.
pub(super) fn long(suites: &[Suite]) -> String {
    let golden = golden(suites);
    let commit = COMMIT.filter(|commit| !commit.is_empty());
    let built = commit.map_or_else(|| "not released".to_owned(), |commit| format!("commit {commit}"));
    let (count, set) = (golden.checks.len(), golden.check_set());
    format!("{} ({built}; {count} checks, set {set})", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checks_are_counted_and_named() {
        let said = super::long(&[]);
        assert!(said.starts_with(env!("CARGO_PKG_VERSION")) && said.contains("; 0 checks, set "), "{said}");
    }
}
