//! The source of container logs: the server itself has none.

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
    /// When its first byte was written.
    pub at: Timestamp,
    /// The line, including its line end if it has one.
    pub text: String,
}

/// The component that runs the containers and keeps their output.
pub trait Logs: Send + Sync {
    /// The kept lines of the container's current run, or of the previous one; `None` if there was no such run.
    fn lines(&self, container: Container<'_>, previous: bool) -> Option<Vec<LogLine>>;

    /// The output of the container's current run as it grows; `None` if there is no such run.
    fn follow(&self, container: Container<'_>) -> Option<Followed>;
}

/// The output of a run of a container, for a follower.
pub struct Followed {
    /// The lines that are kept.
    pub kept: Vec<LogLine>,
    /// Later lines, several at a time. Ends with the run.
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
