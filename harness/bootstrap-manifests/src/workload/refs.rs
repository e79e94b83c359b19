//! The objects to which a Pod template refers by name.

use crate::manifest::Place;

/// The stage at which a missing object takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
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
    /// The program initialises no Nodes with a taint that stays, as control planes have.
    TaintedNodes,
    /// The program initialises no Nodes without a taint that stays.
    UntaintedNodes,
}

/// A reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// The kind of the object.
    pub kind: &'static str,
    /// Empty for objects without a namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key of it that is used, if one is named.
    pub key: Option<String>,
    /// Whether the key becomes an environment variable, which cannot have binary data.
    pub of_variable: bool,
    /// The stage that needs it.
    pub stage: Stage,
    /// Where it is named.
    pub place: Place,
}

impl Ref {
    /// `Secret/kube-system/name`.
    pub fn title(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{}/{}", self.kind, self.name),
            namespace => format!("{}/{namespace}/{}", self.kind, self.name),
        }
    }
}
