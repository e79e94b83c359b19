//! Why the cloud does not do what it was asked.

use super::checks::shown;

/// Why the cloud does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such object; holds kind and id.
    #[error("{0} does not exist")]
    NotFound(String),
    /// Something that exists is in the way.
    #[error("{0}")]
    Conflict(String),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Refusal {
    pub(super) fn no(kind: impl std::fmt::Display, id: &str) -> Refusal {
        Refusal::NotFound(format!("{kind} {}", shown(id)))
    }
}
