//! What each exit code of the program means.

use harness_config::Completeness;
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};

/// Every MUST check that was judged passed. With [`Completeness::Required`] also: none was left unjudged.
pub const CONFORMANT: u8 = 0;
/// A MUST check failed or was blocked by a promise that the CCM broke, or the result is partial and a complete one was required.
pub const NOT_CONFORMANT: u8 = 1;
/// The command line, the run file or the profile is wrong; nothing was started.
pub const USAGE: u8 = 2;
/// The environment (Docker, cluster, cloud, CCM) did not come up, or failed a check that was selected, and none failed by
/// the CCM.
pub const ENVIRONMENT: u8 = 3;
/// There was nothing to run: every check is deselected, undeclared or not observable.
pub const NOTHING_SELECTED: u8 = 4;
/// A private check of level MUST did not pass, and by the contract the code would be [`CONFORMANT`]. Any other code wins.
pub const PRIVATE_FAILED: u8 = 5;

/// The exit code of a run that came as far as having a ledger. [`USAGE`] is never among them.
pub fn exit_code(ledger: &Ledger, completeness: Completeness) -> u8 {
    match by_contract(ledger, completeness) {
        CONFORMANT if ledger.private.iter().any(is_trouble) => PRIVATE_FAILED,
        code => code,
    }
}

/// Whether a private check binds and did not pass.
fn is_trouble(entry: &Entry) -> bool {
    entry.level == Level::Must && !matches!(entry.outcome, Outcome::Pass | Outcome::Skip { .. })
}

fn by_contract(ledger: &Ledger, completeness: Completeness) -> u8 {
    let partial = match completeness {
        Completeness::Optional => CONFORMANT,
        Completeness::Required => NOT_CONFORMANT,
    };
    match ledger.conformance() {
        Conformance::Conformant => CONFORMANT,
        // What was asked for and met trouble of the environment was not answered.
        Conformance::Partial if met_trouble(ledger) => ENVIRONMENT,
        Conformance::Partial => partial,
        Conformance::NotConformant => NOT_CONFORMANT,
        Conformance::NotJudged if ledger.environment_error.is_some() => ENVIRONMENT,
        Conformance::NotJudged if ledger.all().all(|entry| left_out(&entry.outcome)) => NOTHING_SELECTED,
        Conformance::NotJudged if met_trouble(ledger) => ENVIRONMENT,
        // Checks below MUST were judged and no MUST check was run: what was asked for was done.
        Conformance::NotJudged => partial,
    }
}

/// Whether a check met an error of the environment.
fn met_trouble(ledger: &Ledger) -> bool {
    ledger.entries.iter().any(|entry| matches!(entry.outcome, Outcome::Error { .. }))
}

fn left_out(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Skip {
            reason: SkipReason::NotDeclared | SkipReason::NotObservable | SkipReason::Deselected,
            ..
        } => true,
        Outcome::Pass | Outcome::Fail { .. } | Outcome::Blocked { .. } | Outcome::Error { .. } => false,
    }
}
