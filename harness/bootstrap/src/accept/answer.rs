//! The API server's answer to a set of manifests.

use crate::manifest::Place;

/// A reason for which the API server refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Index of the object in the set.
    pub(crate) object: usize,
    pub(crate) place: Place,
    /// What is wrong; the API server's own message where it is known.
    pub(crate) what: String,
    /// What the user can do about it.
    pub(crate) hint: String,
}

/// A field that Kubernetes does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// Index of the object in the set.
    pub(crate) object: usize,
    pub(crate) place: Place,
    /// Its path, such as `spec.template.spec.hostNetwok`.
    pub(crate) path: String,
}

/// The API server's answer to a set of manifests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) unknown: Vec<UnknownField>,
}
