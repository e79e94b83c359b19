//! Where the logs of containers come from: the server has none of its own.

use std::fmt;

use futures::stream::BoxStream;
use jiff::Timestamp;

/// A container, by the names of its Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// The Pod's namespace.
    pub namespace: &'a str,
    /// The Pod's name.
    pub pod: &'a str,
    /// The container's name.
    pub name: &'a str,
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it began.
    pub at: Timestamp,
    /// The line with its end, where it has one.
    pub text: String,
}

/// Whoever runs the containers and keeps what they write.
pub trait Logs: Send + Sync {
    /// The kept lines of the container's current run, or of the one before; `None` when there was no such run.
    fn lines(&self, container: Container<'_>, previous: bool) -> Option<Vec<LogLine>>;

    /// The container's current run as it goes on; `None` when there is no such run.
    fn follow(&self, container: Container<'_>) -> Option<Followed>;
}

/// The output of a run of a container that somebody follows.
pub struct Followed {
    /// The lines that are kept.
    pub kept: Vec<LogLine>,
    /// The lines after these, some at a time. Ends with the run.
    pub coming: BoxStream<'static, Vec<LogLine>>,
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logs")
    }
}
