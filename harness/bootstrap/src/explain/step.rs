//! One step of an explanation.

use serde::Serialize;

/// One step of the explanation: something that waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// A sentence.
    pub text: String,
    /// Where in the manifests, `file:line`, when a manifest says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}
