//! The exit codes of the program.

use harness_config::Completeness;
use harness_core::check::Level;
use harness_core::ledger::{Conformance, Entry, Ledger, Outcome, SkipReason};

/// Every MUST check that was judged has passed. With [`Completeness::Required`], every MUST check was judged.
pub const CONFORMANT: u8 = 0;
/// A MUST check failed or was blocked by a claim that the CCM violated, or the result is partial and a complete one was
/// required.
pub const NOT_CONFORMANT: u8 = 1;
/// The command line, the run file or the profile is wrong; nothing was started.
pub const USAGE: u8 = 2;
/// The environment (Docker, cluster, cloud, CCM) did not start or caused an error of a selected check, and the CCM failed no
/// check.
pub const ENVIRONMENT: u8 = 3;
/// There was nothing to run: every check is deselected, undeclared or not observable.
pub const NOTHING_SELECTED: u8 = 4;
/// A private check of level MUST did not pass, and the code would otherwise be [`CONFORMANT`]. Any other code has
/// precedence.
pub const PRIVATE_FAILED: u8 = 5;

/// The exit code of a run that has a ledger; never [`USAGE`].
pub fn exit_code(ledger: &Ledger, completeness: Completeness) -> u8 {
    match by_contract(ledger, completeness) {
        CONFORMANT if ledger.private.iter().any(is_trouble) => PRIVATE_FAILED,
        code => code,
    }
}

/// Whether a private check of level MUST did not pass.
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
        // A requested check that met an environment error has no result.
        Conformance::Partial if met_trouble(ledger) => ENVIRONMENT,
        Conformance::Partial => partial,
        Conformance::NotConformant => NOT_CONFORMANT,
        Conformance::NotJudged if ledger.environment_error.is_some() => ENVIRONMENT,
        Conformance::NotJudged if ledger.all().all(|entry| left_out(&entry.outcome)) => NOTHING_SELECTED,
        Conformance::NotJudged if met_trouble(ledger) => ENVIRONMENT,
        // Checks below MUST were judged and no MUST check was selected: the request was fulfilled.
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
