//! The objects to which a Pod template refers by name.

use crate::manifest::Place;

/// The stage at which a missing object takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No Pod is created: service account, priority class, runtime class, namespace.
    Creation,
    /// The Pod stays Pending: PersistentVolumeClaims.
    Scheduling,
    /// The container is not started: secrets and config maps in volumes and environment variables.
    Start,
    /// The program starts but cannot do its work.
    Work,
    /// The program works but initialises no Nodes.
    Initialisation,
}

/// A reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ref {
    pub(crate) kind: &'static str,
    /// Empty for objects without a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The key of it that is used, if one is named.
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
