//! What the API server says of a set.

use crate::manifest::Place;

/// Something of an object that the API server refuses it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Index of the object in the set.
    pub(crate) object: usize,
    pub(crate) place: Place,
    /// What is wrong, in the API server's words where they are known.
    pub(crate) what: String,
    /// The way out.
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

/// What the API server says of a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) unknown: Vec<UnknownField>,
}
