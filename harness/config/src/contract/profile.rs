//! Profiles of conformance: parts of the contract that a CCM can conform to by itself.

use harness_core::check::row_of;
use serde::{Deserialize, Serialize};

/// A part of the contract, as `docs/contract/profiles.yaml` has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceProfile {
    /// Its name.
    pub profile: String,
    /// What a CCM that conforms to it does, in a sentence.
    pub title: String,
    /// The rows that it is about, or areas of them: a subject of which none of them asks anything has no part in it.
    pub core: Vec<String>,
    /// Rows, or areas, that it needs as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

impl ConformanceProfile {
    /// Whether a check is of one of its rows.
    pub fn includes(&self, check: &str) -> bool {
        self.is_about(check) || self.beside.iter().any(|name| means(name, check))
    }

    /// Whether a check is of one of the rows that it is about.
    pub fn is_about(&self, check: &str) -> bool {
        self.core.iter().any(|name| means(name, check))
    }
}

/// Whether a name means the row of that check: it is the row's id, or its area.
pub(super) fn means(name: &str, check: &str) -> bool {
    let row = row_of(check);
    let begins = || row.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    name == row || begins()
}
