//! The version that is served.

use serde_json::{Value, json};

/// A version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The minor version: 36 of 1.36.2.
    pub minor: u32,
    /// The patch version: 2 of 1.36.2.
    pub patch: u32,
}

impl Default for Version {
    /// The version whose answers were recorded.
    fn default() -> Self {
        Self { minor: 36, patch: 2 }
    }
}

impl Version {
    /// The answer of `/version`.
    #[must_use]
    pub fn info(&self) -> Value {
        json!({
            "major": "1",
            "minor": self.minor.to_string(),
            "emulationMajor": "1",
            "emulationMinor": self.minor.to_string(),
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": self.minor.saturating_sub(1).to_string(),
            "gitVersion": format!("v1.{}.{}", self.minor, self.patch),
            "gitCommit": "unknown",
            "gitTreeState": "clean",
            "buildDate": "2026-06-11T00:00:00Z",
            "goVersion": "go1.27.3",
            "compiler": "gc",
            "platform": "linux/amd64",
        })
    }
}
