//! The reasons why the cloud rejects a request.

use super::checks::shown;

/// The reason why the cloud rejects a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such object; contains kind and id.
    #[error("{0} does not exist")]
    NotFound(String),
    /// An existing object is in the way.
    #[error("{0}")]
    Conflict(String),
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
}

impl Refusal {
    pub(super) fn no(kind: impl std::fmt::Display, id: &str) -> Refusal {
        Refusal::NotFound(format!("{kind} {}", shown(id)))
    }
}
