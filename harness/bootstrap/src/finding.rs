//! The findings of the lint and the edits of `fix`: data that both use.

use bootstrap_manifests::manifest::Place;
use bootstrap_manifests::workload::Effect;
use serde::{Serialize, Serializer};

/// How binding a row is (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A MUST.
    Must,
    /// A SHOULD.
    Should,
    /// Information.
    Info,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::Info => "INFO",
        })
    }
}

/// A finding of a row of the contract at a place in the manifests.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Row of the contract, or of this tool where the contract has none (`BOOT-READ`, `BOOT-KIND`, `BOOT-API`, `BOOT-REF`).
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The file.
    #[serde(serialize_with = "written")]
    pub(crate) place: Place,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub what: String,
    /// Why that matters, and the source for it.
    pub why: String,
    /// The YAML that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The edit that `fix` makes.
    #[serde(skip)]
    pub(crate) edit: Option<Edit>,
}

impl Finding {
    /// Whether it is about a version of the API that old clusters serve and newer ones do not.
    pub fn is_of_an_old_version(&self) -> bool {
        self.what.contains(bootstrap_manifests::accept::NO_LONGER_SERVED)
    }

    /// The place, as `file:line`.
    pub fn at(&self) -> String {
        self.place.to_string()
    }
}

fn written<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

/// An edit of a text. Objects are numbered as in the set; paths lead to the Pod's specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Sets a key to a scalar.
    Set { object: usize, path: Vec<String>, key: String, value: String },
    /// Adds what is missing of nested maps, in the Pod's specification or in one of its containers.
    Insert { object: usize, path: Vec<String>, container: Option<usize>, keys: Vec<String>, value: String },
    /// Adds a toleration for a taint.
    Tolerate { object: usize, path: Vec<String>, key: String, effect: Effect },
    /// Removes environment variables that read the host's address.
    DropHostIp { object: usize, path: Vec<String> },
    /// Removes a label from the Node selection.
    DropNodeRequirement { object: usize, path: Vec<String>, label: String },
    /// Corrects an image reference so that it can be parsed.
    Image { object: usize, path: Vec<String>, container: usize },
    /// Sets a flag to another value.
    Argument { object: usize, path: Vec<String>, flag: String, value: String },
    /// Makes a probe use `/healthz`.
    ProbePath { object: usize, path: Vec<String>, kind: String },
    /// Makes a webhook fail open.
    FailOpen { object: usize, webhook: usize },
    /// Appends a document.
    Add { object: usize, text: String },
    /// Appends a service account with its permissions, and uses it.
    Grant { object: usize, path: Vec<String>, text: String },
}

impl Edit {
    /// What it does, for a user.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Edit::Set { key, value, .. } => format!("set '{key}: {value}'"),
            Edit::Insert { keys, .. } => format!("add {}", keys.join(".")),
            Edit::Tolerate { key, effect, .. } => format!("tolerate {key}:{effect}"),
            Edit::DropHostIp { .. } => "do not read the host's address into the environment".to_owned(),
            Edit::DropNodeRequirement { label, .. } => format!("do not require the Node label {label}"),
            Edit::Image { .. } => "correct the image reference".to_owned(),
            Edit::Argument { flag, value, .. } => format!("set --{flag}={value}"),
            Edit::ProbePath { kind, .. } => format!("let the {kind} request /healthz"),
            Edit::FailOpen { .. } => "set 'failurePolicy: Ignore'".to_owned(),
            Edit::Add { .. } => "add an object".to_owned(),
            Edit::Grant { .. } => "grant the permissions that its service account lacks".to_owned(),
        }
    }

    /// The object that is changed.
    pub(crate) fn object(&self) -> usize {
        match self {
            Edit::Set { object, .. }
            | Edit::Insert { object, .. }
            | Edit::Tolerate { object, .. }
            | Edit::DropHostIp { object, .. }
            | Edit::DropNodeRequirement { object, .. }
            | Edit::Image { object, .. }
            | Edit::Argument { object, .. }
            | Edit::ProbePath { object, .. }
            | Edit::FailOpen { object, .. }
            | Edit::Add { object, .. }
            | Edit::Grant { object, .. } => *object,
        }
    }
}
