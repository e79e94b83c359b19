//! The wrappers of the driver API's answers.

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
    /// The fault, as a lower-case fragment.
    pub error: String,
}
