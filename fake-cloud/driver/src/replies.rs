//! What the driver API wraps its answers in.

use super::types::Entry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalPage {
    /// Entries in order of arrival, without gaps.
    pub entries: Vec<Entry>,
}

/// Body of every error of the driver API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What is wrong, as a lower-case fragment.
    pub error: String,
}
