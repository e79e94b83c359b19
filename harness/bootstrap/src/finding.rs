//! What lint finds and fix changes: data that both know.

use crate::manifest::Place;
use crate::workload::Effect;
use serde::{Serialize, Serializer};

/// How binding a row is (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// It must be so.
    Must,
    /// It should be so.
    Should,
    /// Worth knowing.
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

/// What a row says of a place.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Row of the contract, or of this tool where the contract has none (`BOOT-READ`, `BOOT-API`, `BOOT-REF`).
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// Where.
    #[serde(serialize_with = "written")]
    pub(crate) place: Place,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub what: String,
    /// Why that matters, with its source.
    pub why: String,
    /// The YAML that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
    /// The change that `fix` makes.
    #[serde(skip)]
    pub(crate) edit: Option<Edit>,
}

impl Finding {
    /// Where, as `file:line`.
    pub fn at(&self) -> String {
        self.place.to_string()
    }
}

fn written<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

/// A change of a text. Objects are numbered as in the set; paths lead to the Pod's specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Give a key a scalar.
    Set { object: usize, path: Vec<String>, key: String, value: String },
    /// Tolerate a taint.
    Tolerate { object: usize, path: Vec<String>, key: String, effect: Effect },
    /// Take environment that reads the host's address out.
    DropHostIp { object: usize, path: Vec<String> },
    /// Do not select Nodes by a label.
    DropNodeRequirement { object: usize, path: Vec<String>, label: String },
    /// Write an image so that it parses.
    Image { object: usize, path: Vec<String>, container: usize },
    /// Give a flag another value.
    Argument { object: usize, path: Vec<String>, flag: String, value: String },
    /// Probe `/healthz`.
    ProbePath { object: usize, path: Vec<String>, kind: String },
    /// Let a webhook fail open.
    FailOpen { object: usize, webhook: usize },
    /// Append a document.
    Add { object: usize, text: String },
    /// Append an account and its rights, and use that account.
    Grant { object: usize, path: Vec<String>, text: String },
}

impl Edit {
    /// The object that is changed.
    pub(crate) fn object(&self) -> usize {
        match self {
            Edit::Set { object, .. }
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
