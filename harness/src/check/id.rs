//! The name of a check.

use std::fmt;

/// The id of a check: a row of the contract (`NODE-INIT-01`), or one claim of a row that makes several
/// (`SVC-UPD-01.port`).
///
/// The row is capital letters, digits and hyphens; the claim, after a dot, is small letters, digits and hyphens. So an
/// id is a test's name and a folder's name as it stands, and the row alone names all of its claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckId(&'static str);

impl CheckId {
    /// From its text.
    ///
    /// # Panics
    /// When the text has another form; in a table of checks that is an error of the compiler.
    pub const fn new(text: &'static str) -> CheckId {
        let bytes = text.as_bytes();
        assert!(!bytes.is_empty() && bytes[0].is_ascii_uppercase(), "an id begins with a capital letter");
        let (mut at, mut hyphens, mut in_claim) = (0, 0, false);
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b'.' => {
                    assert!(!in_claim && at + 1 < bytes.len(), "an id has one dot, before the claim");
                    in_claim = true;
                }
                b'-' => hyphens += 1,
                b'0'..=b'9' => {}
                _ if in_claim => assert!(byte.is_ascii_lowercase(), "a claim is of small letters"),
                _ => assert!(byte.is_ascii_uppercase(), "a row's id is of capital letters"),
            }
            at += 1;
        }
        assert!(hyphens > 0, "a row's id has a hyphen, as in NODE-INIT-01");
        CheckId(text)
    }

    /// As text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The contract's row.
    pub fn row(self) -> &'static str {
        row_of(self.0)
    }

    /// Whether `name` means this check: it is its id, or the id of its row.
    pub fn is_named(self, name: &str) -> bool {
        self.0 == name || self.row() == name
    }

    pub(super) const fn equals(self, other: CheckId) -> bool {
        let (one, two) = (self.0.as_bytes(), other.0.as_bytes());
        if one.len() != two.len() {
            return false;
        }
        let mut at = one.len();
        // From the end: ids of one area begin alike.
        while at > 0 {
            at -= 1;
            if one[at] != two[at] {
                return false;
            }
        }
        true
    }
}

/// The contract's row in a check's id.
pub fn row_of(id: &str) -> &str {
    id.split_once('.').map_or(id, |(row, _)| row)
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl PartialEq<str> for CheckId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<String> for CheckId {
    fn eq(&self, other: &String) -> bool {
        self.0 == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Check, Suite, assert_unique_ids};
    use super::*;

    #[test]
    fn a_row_names_all_of_its_claims_and_a_claim_itself() {
        let (port, other) = (CheckId::new("SVC-UPD-01.port"), CheckId::new("SVC-UPD-011"));
        assert_eq!((port.row(), port.as_str()), ("SVC-UPD-01", "SVC-UPD-01.port"));
        assert!(port.is_named("SVC-UPD-01") && port.is_named("SVC-UPD-01.port"));
        assert!(!port.is_named("SVC-UPD-01.affinity") && !other.is_named("SVC-UPD-01"));
        assert!(!CheckId::new("NODE-INIT-01").is_named("NODE-INIT-01.a"));
    }

    #[test]
    fn ids_of_another_form_are_refused() {
        for text in ["", "svc-upd-01", "SVC", "SVC-UPD-01.", "SVC-UPD-01.Port", "SVC-UPD-01.a.b", "SVC/1-2"] {
            assert!(std::panic::catch_unwind(|| CheckId::new(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn two_checks_of_one_id_are_refused_in_whatever_suite() {
        const fn check(id: &'static str) -> Check<()> {
            Check::must(id, "it holds", "here", |()| Box::pin(async { Ok(()) }))
        }
        const A: &[Check<()>] = &[check("A-1"), check("A-1.b")];
        const B: &[Check<()>] = &[check("B-1")];
        const fn suite(tables: &'static [&'static [Check<()>]]) -> Suite<()> {
            Suite { name: "s", proves: "p", tables }
        }
        const APART: &[Suite<()>] = &[suite(&[A]), suite(&[&[], B])];
        const TWICE: &[Suite<()>] = &[suite(&[A, B]), suite(&[B])];
        const { assert_unique_ids(APART) };
        assert!(std::panic::catch_unwind(|| assert_unique_ids(TWICE)).is_err());
    }
}
