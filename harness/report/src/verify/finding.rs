//! The findings of `verify`.

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// It was created by another program, or by none.
    #[error("version '{version}' of the harness is not known to this program, which knows {}", .known.join(", "))]
    UnknownVersion {
        /// The value in the report.
        version: String,
        /// The versions that this program knows.
        known: Vec<String>,
    },
    /// A check of that version is missing in the report.
    #[error("check {0} is missing: version {1} of the harness has it")]
    RemovedCheck(String, String),
    /// The report has a check that the version does not have.
    #[error("check {0} was added: version {1} of the harness has no such check")]
    AddedCheck(String, String),
    /// A check occurs more than once.
    #[error("duplicate check {0}")]
    RepeatedCheck(String),
    /// A check has another level than in that version.
    #[error("check {id} is of level {level}, not {is}")]
    Level {
        /// The check.
        id: String,
        /// Its level in the version's list.
        level: String,
        /// The value in the report.
        is: String,
    },
    /// A check has another suite or title than in that version.
    #[error("check {id} says of itself '{is}', not '{was}'")]
    Claim {
        /// The check.
        id: String,
        /// Suite and title in the version's list.
        was: String,
        /// The value in the report.
        is: String,
    },
    /// A derived value does not match its sources.
    #[error("'{key}' does not follow from the checks: it says {says}, they make {make}")]
    Derived {
        /// The report's key.
        key: String,
        /// The value found.
        says: String,
        /// The expected value.
        make: String,
    },
    /// The order of the checks differs between report and stream.
    #[error(
        "the checks are in another order than in the stream of events: {report} stands where {stream} is"
    )]
    Order {
        /// The first check whose place differs, in the order of the stream.
        stream: String,
        /// The check in its place in the report.
        report: String,
    },
    /// The file of the stream is not as a run wrote it.
    #[error("the stream of events is not as a run wrote it: {0}")]
    NotAsWritten(String),
    /// The stream ends before the end of the run.
    #[error("the stream of events was cut after event {after}{}", .of.map_or_else(String::new, |of| format!(" of {of}")))]
    Cut {
        /// How many events it has.
        after: u64,
        /// How many it had by the report, if that says so.
        of: Option<u64>,
    },
    /// The report was not created from this stream.
    #[error("the stream of events is not the one the report was made of: {0}")]
    OtherStream(String),
    /// The stream contradicts itself.
    #[error("the stream of events contradicts itself: {0}")]
    Contradiction(String),
    /// A check has another outcome in the stream.
    #[error("check {id} ended with '{stream}' by the stream of events, the report says '{report}'")]
    Outcome {
        /// The check.
        id: String,
        /// The value in the stream.
        stream: String,
        /// The value in the report.
        report: String,
    },
    /// A figure of a check or of the run differs in the stream.
    #[error("{what} is {stream} by the stream of events, the report says {report}")]
    Figure {
        /// The name of the figure.
        what: String,
        /// The value in the stream.
        stream: String,
        /// The value in the report.
        report: String,
    },
    /// The subject under test differs in the stream.
    #[error("subject.{key} is {stream} by the stream of events, the report says {report}")]
    Subject {
        /// The key.
        key: String,
        /// The value in the stream.
        stream: String,
        /// The value in the report.
        report: String,
    },
    /// A setting differs in the stream.
    #[error("settings: by the stream of events {stream}, the report says {report}")]
    Setting {
        /// The value in the stream.
        stream: String,
        /// The value in the report.
        report: String,
    },
    /// A limit does not match the report's settings.
    #[error("settings: {0}")]
    UntrueLimit(String),
    /// The requirements of the result are lower than those of the contract.
    #[error("relaxed: {0}; the result is not by the contract")]
    Relaxed(String),
    /// It claims to certify, and cannot.
    #[error("it says 'certify: true', which refuses what is in it: {0}")]
    Certify(String),
    /// The report is about another image.
    #[error("it is about the image {is}, not {asked}")]
    OtherImage {
        /// The requested image.
        asked: String,
        /// The kind or version in the file.
        is: String,
    },
}

impl Finding {
    /// Whether differences between report and stream follow from it: the stream is not the one of the report.
    pub(super) fn is_cause(&self) -> bool {
        matches!(self, Finding::NotAsWritten(_) | Finding::Cut { .. } | Finding::OtherStream(_))
    }

    /// Whether it is a difference between report and stream.
    pub(super) fn is_consequence(&self) -> bool {
        match self {
            Finding::Outcome { .. }
            | Finding::Figure { .. }
            | Finding::Subject { .. }
            | Finding::Setting { .. }
            | Finding::Order { .. } => true,
            Finding::UnknownVersion { .. }
            | Finding::RemovedCheck(..)
            | Finding::AddedCheck(..)
            | Finding::RepeatedCheck(_)
            | Finding::Level { .. }
            | Finding::Claim { .. }
            | Finding::Derived { .. }
            | Finding::NotAsWritten(_)
            | Finding::Cut { .. }
            | Finding::OtherStream(_)
            | Finding::Contradiction(_)
            | Finding::UntrueLimit(_)
            | Finding::Relaxed(_)
            | Finding::Certify(_)
            | Finding::OtherImage { .. } => false,
        }
    }

    /// A word for its kind, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Finding::UnknownVersion { .. } => "unknown-version",
            Finding::RemovedCheck(..) => "removed-check",
            Finding::AddedCheck(..) => "added-check",
            Finding::RepeatedCheck(_) => "repeated-check",
            Finding::Level { .. } => "level",
            Finding::Claim { .. } => "claim",
            Finding::Derived { .. } => "derived",
            Finding::Order { .. } => "order",
            Finding::NotAsWritten(_) => "not-as-written",
            Finding::Cut { .. } => "cut-stream",
            Finding::OtherStream(_) => "other-stream",
            Finding::Contradiction(_) => "contradiction",
            Finding::Outcome { .. } => "outcome",
            Finding::Figure { .. } => "figure",
            Finding::Subject { .. } => "subject",
            Finding::Setting { .. } => "setting",
            Finding::UntrueLimit(_) => "untrue-limit",
            Finding::Relaxed(_) => "relaxed",
            Finding::Certify(_) => "certify",
            Finding::OtherImage { .. } => "other-image",
        }
    }
}
