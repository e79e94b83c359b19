//! The ids of checks.

use std::fmt;

/// The id of a check: a row of the contract (`NODE-INIT-01`), or one claim of a row that makes several
/// (`SVC-UPD-01.port`).
///
/// The row consists of capital letters, digits and hyphens; the claim, after a dot, of lower-case letters, digits and
/// hyphens. So an id can be used as the name of a test or a folder, and the row alone selects all of its claims.
///
/// ```
/// use harness_core::check::CheckId;
///
/// const PORT: CheckId = CheckId::of_claim("SVC-UPD-01", "port");
/// assert_eq!((PORT.as_str(), PORT.row()), ("SVC-UPD-01.port", "SVC-UPD-01"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckId {
    /// The text, padded with zeros.
    text: [u8; LONGEST],
    length: usize,
}

/// Maximum length in bytes: ids are part of the names of Services and Nodes.
const LONGEST: usize = 40;

impl CheckId {
    /// Parses an id.
    ///
    /// # Panics
    /// When the text has another form or is too long; in a table of checks that is a compile error.
    pub const fn new(text: &str) -> CheckId {
        let bytes = text.as_bytes();
        assert!(!bytes.is_empty() && bytes[0].is_ascii_uppercase(), "an id begins with a capital letter");
        assert!(bytes.len() <= LONGEST, "an id is at most 40 bytes long");
        let (mut id, mut hyphens, mut in_claim) = (CheckId { text: [0; LONGEST], length: 0 }, 0, false);
        while id.length < bytes.len() {
            let byte = bytes[id.length];
            match byte {
                b'.' => {
                    assert!(!in_claim && id.length + 1 < bytes.len(), "an id has one dot, before the claim");
                    in_claim = true;
                }
                b'-' => hyphens += 1,
                b'0'..=b'9' => {}
                _ if in_claim => assert!(byte.is_ascii_lowercase(), "a claim has only lower-case letters"),
                _ => assert!(byte.is_ascii_uppercase(), "a row's id has only capital letters"),
            }
            id.text[id.length] = byte;
            id.length += 1;
        }
        assert!(hyphens > 0, "a row's id has a hyphen, as in NODE-INIT-01");
        id
    }

    /// The id of one claim of a contract row with several claims.
    ///
    /// # Panics
    /// Like [`CheckId::new`].
    pub const fn of_claim(row: &str, claim: &str) -> CheckId {
        let (row, claim) = (row.as_bytes(), claim.as_bytes());
        let (mut text, mut at) = ([b'.'; LONGEST], 0);
        assert!(row.len() + 1 + claim.len() <= LONGEST, "an id is at most 40 bytes long");
        while at < row.len() {
            text[at] = row[at];
            at += 1;
        }
        at = 0;
        while at < claim.len() {
            text[row.len() + 1 + at] = claim[at];
            at += 1;
        }
        match std::str::from_utf8(text.split_at(row.len() + 1 + claim.len()).0) {
            Ok(text) => CheckId::new(text),
            Err(_) => panic!("an id has only ASCII letters"),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).expect("an id has only ASCII letters")
    }

    /// The contract's row.
    pub fn row(&self) -> &str {
        row_of(self.as_str())
    }

    /// Whether `name` selects this check: it is its id, or the id of its row.
    pub fn is_named(&self, name: &str) -> bool {
        self.as_str() == name || self.row() == name
    }

    /// Compares by bytes: below 0 if this id sorts before `text`, 0 if they are equal, above 0 otherwise.
    pub(super) const fn order(&self, text: &str) -> i32 {
        let (text, mut at) = (text.as_bytes(), 0);
        while at < self.length && at < text.len() {
            if self.text[at] != text[at] {
                return self.text[at] as i32 - text[at] as i32;
            }
            at += 1;
        }
        self.length as i32 - text.len() as i32
    }

    pub(super) const fn equals(&self, other: &CheckId) -> bool {
        if self.length != other.length {
            return false;
        }
        let mut at = self.length;
        // From the end: ids of one area have the same beginning.
        while at > 0 {
            at -= 1;
            if self.text[at] != other.text[at] {
                return false;
            }
        }
        true
    }
}

/// The contract's row of a check's id.
pub fn row_of(id: &str) -> &str {
    id.split_once('.').map_or(id, |(row, _)| row)
}

/// The prefix of a check's names in Kubernetes and the cloud: lower-case letters, digits and hyphens.
pub fn label_of(id: &str) -> String {
    id.to_lowercase().replace('.', "-")
}

impl fmt::Display for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CheckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for CheckId {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<String> for CheckId {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Check, Party, Suite, assert_unique_ids};
    use super::*;

    #[test]
    fn a_row_names_all_of_its_claims_and_a_claim_itself() {
        let (port, other) = (CheckId::new("SVC-UPD-01.port"), CheckId::new("SVC-UPD-011"));
        assert_eq!((port.row(), port.as_str()), ("SVC-UPD-01", "SVC-UPD-01.port"));
        assert_eq!(port, CheckId::of_claim("SVC-UPD-01", "port"));
        assert_eq!(format!("{port:<18}{port:?}"), "SVC-UPD-01.port   SVC-UPD-01.port");
        assert!(port.is_named("SVC-UPD-01") && port.is_named("SVC-UPD-01.port"));
        assert!(!port.is_named("SVC-UPD-01.affinity") && !other.is_named("SVC-UPD-01"));
        assert!(!CheckId::new("NODE-INIT-01").is_named("NODE-INIT-01.a"));
    }

    #[test]
    fn ids_of_another_form_are_refused() {
        for text in [
            "",
            "svc-upd-01",
            "SVC",
            "SVC-UPD-01.",
            "SVC-UPD-01.Port",
            "SVC-UPD-01.a.b",
            "SVC/1-2",
            "A-12345678901234567890123456789012345678901234567890",
        ] {
            assert!(std::panic::catch_unwind(|| CheckId::new(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn two_checks_of_one_id_are_refused_in_whatever_suite() {
        const fn check(id: &'static str) -> Check<()> {
            Check::own(id, "it holds", "here", |()| Box::pin(async { Ok(()) }))
        }
        const A: &[Check<()>] = &[check("A-1"), check("A-1.b")];
        const B: &[Check<()>] = &[check("B-1")];
        const fn suite(tables: &'static [&'static [Check<()>]]) -> Suite<()> {
            Suite { name: "s", proves: "p", judges: Party::Ccm, tables }
        }
        const APART: &[Suite<()>] = &[suite(&[A]), suite(&[&[], B])];
        const TWICE: &[Suite<()>] = &[suite(&[A, B]), suite(&[B])];
        const { assert_unique_ids(APART) };
        assert!(std::panic::catch_unwind(|| assert_unique_ids(TWICE)).is_err());
    }
}
