//! Findings: what a row says of a place.

use crate::fix::Edit;
use crate::manifest::Place;
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

/// Findings so far.
#[derive(Default)]
pub(super) struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        (id, level): (&'static str, Level),
        place: Place,
        what: String,
        why: &str,
        mend: Option<(String, Option<Edit>)>,
    ) {
        let (mend, edit) = mend.map_or((None, None), |(text, edit)| (Some(text), edit));
        let column = place.column;
        self.findings.push(Finding { id, level, column, place, what, why: why.to_owned(), mend, edit });
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by(|a, b| (&a.place, a.id).cmp(&(&b.place, b.id)));
        self.findings
    }
}
