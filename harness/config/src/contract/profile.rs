//! Profiles of conformance: parts of the contract that a CCM can conform to separately.

use harness_core::check::row_of;
use serde::{Deserialize, Serialize};

/// A part of the contract, as in `docs/contract/profiles.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceProfile {
    /// Its name.
    pub profile: String,
    /// A sentence about what a conforming CCM does.
    pub title: String,
    /// The rows or areas that it is about. It does not apply to a subject for which none of them applies.
    pub core: Vec<String>,
    /// Rows or areas that it also needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

impl ConformanceProfile {
    /// Whether a check belongs to one of its rows.
    pub fn includes(&self, check: &str) -> bool {
        self.is_about(check) || self.beside.iter().any(|name| means(name, check))
    }

    /// Whether a check belongs to one of the rows that it is about.
    pub fn is_about(&self, check: &str) -> bool {
        self.core.iter().any(|name| means(name, check))
    }
}

/// Whether a name refers to the row of the check: the name is the row's id, or its area.
pub(super) fn means(name: &str, check: &str) -> bool {
    let row = row_of(check);
    let begins = || row.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    name == row || begins()
}
