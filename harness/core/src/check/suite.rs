//! Groups of checks, and the rule that ids of checks are unique.

use super::{Check, Party};

/// A named group of checks.
pub struct Suite<Cx: 'static> {
    /// Name for `--suite` and the first part of a test's name, e.g. `taint-removal`.
    pub name: &'static str,
    /// What the suite shows, one sentence.
    pub proves: &'static str,
    /// The component that it judges: its checks apply to profiles with such a component.
    pub judges: Party,
    /// Its checks, as the tables of its modules.
    pub tables: &'static [&'static [Check<Cx>]],
}

impl<Cx: 'static> Suite<Cx> {
    /// Its checks, in order.
    pub fn checks(&self) -> impl Iterator<Item = &'static Check<Cx>> + use<Cx> {
        self.tables.iter().flat_map(|table| table.iter())
    }
}

/// Fails at compile time if two checks have the same id.
///
/// ```
/// use harness_core::check::{Party, Suite, assert_unique_ids};
///
/// # struct Cx;
/// const SUITES: &[Suite<Cx>] =
///     &[Suite { name: "acme", proves: "what Acme promises", judges: Party::Ccm, tables: &[] }];
/// const _: () = assert_unique_ids(SUITES);
/// ```
///
/// # Panics
/// When two do.
pub const fn assert_unique_ids<Cx>(suites: &[Suite<Cx>]) {
    let mut next = Position::START;
    while let Some((check, after)) = next.check(suites) {
        let mut other = after;
        while let Some((later, after)) = other.check(suites) {
            assert!(!check.id.equals(&later.id), "two checks have one id");
            other = after;
        }
        next = after;
    }
}

/// A place in the tables of all suites.
#[derive(Clone, Copy)]
struct Position {
    suite: usize,
    table: usize,
    check: usize,
}

impl Position {
    const START: Position = Position { suite: 0, table: 0, check: 0 };

    /// The check at that place or the next one, and the place after it.
    const fn check<Cx>(mut self, suites: &[Suite<Cx>]) -> Option<(&'static Check<Cx>, Position)> {
        while self.suite < suites.len() {
            let tables = suites[self.suite].tables;
            if self.table >= tables.len() {
                self = Position { suite: self.suite + 1, table: 0, check: 0 };
            } else if self.check >= tables[self.table].len() {
                self = Position { table: self.table + 1, check: 0, ..self };
            } else {
                let found = &tables[self.table][self.check];
                return Some((found, Position { check: self.check + 1, ..self }));
            }
        }
        None
    }
}
