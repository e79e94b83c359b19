//! The levels of checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How binding a requirement is, after RFC 2119 (contract section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Failing it makes the CCM not conformant.
    Must,
    /// Failing it is reported and does not change the verdict.
    Should,
    /// Recorded, never failed.
    Info,
}

impl Level {
    /// The next lower level.
    pub fn softer(self) -> Level {
        match self {
            Level::Must => Level::Should,
            Level::Should | Level::Info => Level::Info,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::Info => "INFO",
        })
    }
}
