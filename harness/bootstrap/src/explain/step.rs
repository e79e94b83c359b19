//! One step of an explanation.

use serde::Serialize;

/// One step of the explanation: something that waits, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// A sentence.
    pub text: String,
    /// Its place in the manifests as `file:line`, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}
