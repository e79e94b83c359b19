//! What the admin API wraps its answers in.

use super::types::Entry;
use serde::{Deserialize, Serialize};

/// Answer to `GET /admin/v1/health`; needs no token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The dialect the cloud API speaks.
    pub dialect: String,
    /// Version of the fake cloud.
    pub version: String,
}

/// A part of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalPage {
    /// Entries in order of arrival, without gaps.
    pub entries: Vec<Entry>,
}

/// Body of every error of the admin API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What is wrong, as a lower-case fragment.
    pub error: String,
}
