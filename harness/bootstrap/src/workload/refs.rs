//! What a Pod template refers to by name.

use crate::manifest::Place;

/// At which step the absence of an object is felt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No Pod is made: service account, priority class, runtime class, namespace.
    Creation,
    /// The Pod stays Pending: claims.
    Scheduling,
    /// The container is not started: secrets and config maps in volumes and environment.
    Start,
    /// The program starts and cannot do its work.
    Work,
}

/// A reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ref {
    pub(crate) kind: &'static str,
    /// Empty for objects without a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The key inside it that is used, if one is named.
    pub(crate) key: Option<String>,
    pub(crate) stage: Stage,
    pub(crate) place: Place,
}

impl Ref {
    /// `Secret/kube-system/name`.
    pub(crate) fn title(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{}/{}", self.kind, self.name),
            namespace => format!("{}/{namespace}/{}", self.kind, self.name),
        }
    }
}
