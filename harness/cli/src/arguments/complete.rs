//! Values that shells complete: what this program knows by name.

use crate::book;
use crate::controls::list;
use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use harness_config::{Profile, Topology};
use harness_core::check::row_of;
use harness_core::ledger::Share;
use harness_runner::golden;
use harness_testkit::{Check, Suite};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// The suites of this program.
static SUITES: OnceLock<&'static [Suite]> = OnceLock::new();

/// Sets the suites whose names and checks are completed. A second call in one process has no effect.
pub(crate) fn know(suites: &'static [Suite]) {
    let _ = SUITES.set(suites);
}

fn known() -> &'static [Suite] {
    SUITES.get().copied().unwrap_or_default()
}

fn all_checks() -> impl Iterator<Item = &'static Check> {
    known().iter().flat_map(Suite::checks)
}

fn candidate(name: impl Into<std::ffi::OsString>, about: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(about.into().into()))
}

/// Names of suites.
pub(super) fn suites() -> Vec<CompletionCandidate> {
    known().iter().map(|suite| candidate(suite.name, suite.proves)).collect()
}

/// Pages of the book.
pub(super) fn pages() -> Vec<CompletionCandidate> {
    book::pages().map(CompletionCandidate::new).collect()
}

/// Ids of checks.
pub(super) fn checks() -> Vec<CompletionCandidate> {
    all_checks().map(|check| candidate(check.id.as_str(), check.claim.title)).collect()
}

/// Ids of checks, of rows of the contract, and of the CCMs of `controls`; names of suites and of profiles of conformance.
pub(super) fn explained() -> Vec<CompletionCandidate> {
    let rows: BTreeSet<&str> = all_checks().map(|check| row_of(check.id.as_str())).collect();
    let ids: BTreeSet<&str> = all_checks().map(|check| check.id.as_str()).collect();
    let rows = rows.difference(&ids).map(|row| candidate(*row, "a row of the contract"));
    let subjects = mutants().into_iter().chain(variants()).chain(adversaries());
    let subjects = subjects.filter(|one| one.get_value() != list::ALL);
    checks().into_iter().chain(rows).chain(suites()).chain(conformance_profiles()).chain(subjects).collect()
}

/// Names of profiles that are part of the program, and paths.
pub(super) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = Profile::built_in();
    names_and_paths(names.into_iter().map(CompletionCandidate::new), current)
}

/// Names of topologies, and paths.
pub(super) fn topologies(current: &OsStr) -> Vec<CompletionCandidate> {
    names_and_paths(Topology::names().map(CompletionCandidate::new), current)
}

/// Those names that continue what was typed, and paths.
fn names_and_paths(
    names: impl Iterator<Item = CompletionCandidate>,
    current: &OsStr,
) -> Vec<CompletionCandidate> {
    let typed = current.as_encoded_bytes();
    let fits = |name: &CompletionCandidate| name.get_value().as_encoded_bytes().starts_with(typed);
    names.filter(fits).chain(PathCompleter::any().complete(current)).collect()
}

/// Names of profiles of conformance.
pub(super) fn conformance_profiles() -> Vec<CompletionCandidate> {
    golden(known()).profiles.into_iter().map(|one| candidate(one.profile, one.title)).collect()
}

/// Ids of mutants, and the word for all of them.
pub(super) fn mutants() -> Vec<CompletionCandidate> {
    named(list::mutants(&[], Share::WHOLE).unwrap_or_default().into_iter().map(|one| one.mutant))
}

/// Ids of conforming variants, and the word for all of them.
pub(super) fn variants() -> Vec<CompletionCandidate> {
    named(list::variants(&[], Share::WHOLE).unwrap_or_default().into_iter().map(|one| one.variant))
}

/// Ids of adversaries, and the word for all of them.
pub(super) fn adversaries() -> Vec<CompletionCandidate> {
    named(list::adversaries(&[], Share::WHOLE).unwrap_or_default().into_iter().map(|one| one.adversary))
}

fn named(ids: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    ids.chain([list::ALL.to_owned()]).map(CompletionCandidate::new).collect()
}
