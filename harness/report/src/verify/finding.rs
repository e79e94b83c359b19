//! What `verify` objects to.

/// One thing that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// Another program made it, or none.
    #[error("version '{version}' of the harness is not known to this program, which knows {}", .known.join(", "))]
    UnknownVersion {
        /// What the report says.
        version: String,
        /// What this program knows.
        known: Vec<String>,
    },
    /// A check of that version is not in the report.
    #[error("check {0} is missing: version {1} of the harness has it")]
    RemovedCheck(String, String),
    /// The report has a check that the version does not have.
    #[error("check {0} was added: version {1} of the harness has no such check")]
    AddedCheck(String, String),
    /// A check stands there more than once.
    #[error("check {0} stands there more than once")]
    RepeatedCheck(String),
    /// A check binds otherwise than in that version.
    #[error("check {id} is of level {level}, not {is}")]
    Level {
        /// The check.
        id: String,
        /// How binding it is by the version's list.
        level: String,
        /// What the report says.
        is: String,
    },
    /// A check claims something else than in that version.
    #[error("check {id} says of itself '{is}', not '{was}'")]
    Claim {
        /// The check.
        id: String,
        /// Suite and title by the version's list.
        was: String,
        /// What the report says.
        is: String,
    },
    /// A value that follows from others does not.
    #[error("'{key}' does not follow from the checks: it says {says}, they make {make}")]
    Derived {
        /// The report's key.
        key: String,
        /// What stands there.
        says: String,
        /// What it has to be.
        make: String,
    },
    /// The report has its checks in another order than the stream.
    #[error(
        "the checks are in another order than in the stream of events: {report} stands where {stream} is"
    )]
    Order {
        /// The first check that is elsewhere, by the stream.
        stream: String,
        /// The check in its place, by the report.
        report: String,
    },
    /// The file of the stream is not as a run has left it.
    #[error("the stream of events is not as a run wrote it: {0}")]
    NotAsWritten(String),
    /// The stream ends before the run.
    #[error("the stream of events was cut after event {after}{}", .of.map_or_else(String::new, |of| format!(" of {of}")))]
    Cut {
        /// How many events it has.
        after: u64,
        /// How many it had by the report, if that says so.
        of: Option<u64>,
    },
    /// The stream is not the one that the report was made of.
    #[error("the stream of events is not the one the report was made of: {0}")]
    OtherStream(String),
    /// The stream contradicts itself.
    #[error("the stream of events contradicts itself: {0}")]
    Contradiction(String),
    /// A check ended otherwise by the stream.
    #[error("check {id} ended with '{stream}' by the stream of events, the report says '{report}'")]
    Outcome {
        /// The check.
        id: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A figure of a check or of the run is another by the stream.
    #[error("{what} is {stream} by the stream of events, the report says {report}")]
    Figure {
        /// Which figure of what.
        what: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// What was tested is something else by the stream.
    #[error("subject.{key} is {stream} by the stream of events, the report says {report}")]
    Subject {
        /// The key.
        key: String,
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A setting is another by the stream.
    #[error("settings: by the stream of events {stream}, the report says {report}")]
    Setting {
        /// By the stream.
        stream: String,
        /// By the report.
        report: String,
    },
    /// A limit is not what the report makes of it.
    #[error("settings: {0}")]
    UntrueLimit(String),
    /// The result asks less than the contract does.
    #[error("relaxed: {0}; the result is not by the contract")]
    Relaxed(String),
    /// It says that it certifies, and cannot.
    #[error("it says 'certify: true', which refuses what is in it: {0}")]
    Certify(String),
    /// It is about another image.
    #[error("it is about the image {is}, not {asked}")]
    OtherImage {
        /// What was asked for.
        asked: String,
        /// What it says.
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
