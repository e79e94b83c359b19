//! The API server's answer to a set of manifests.

use crate::manifest::Place;

/// A reason for which the API server refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the object in the set.
    pub object: usize,
    /// Where the cause is.
    pub place: Place,
    /// What is wrong; the API server's own message where it is known.
    pub what: String,
    /// What the user can do about it.
    pub hint: String,
}

/// A field that Kubernetes does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Index of the object in the set.
    pub object: usize,
    /// Where it is.
    pub place: Place,
    /// Its path, such as `spec.template.spec.hostNetwok`.
    pub path: String,
}

/// The API server's answer to a set of manifests.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The objects that it refuses, in the order of the manifests.
    pub refusals: Vec<Refusal>,
    /// The fields that it drops with a warning.
    pub unknown: Vec<UnknownField>,
}
