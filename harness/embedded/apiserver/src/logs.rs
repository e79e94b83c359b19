//! Where the logs of containers come from: the server has none of its own.

use std::fmt;

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
}

impl fmt::Debug for dyn Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logs")
    }
}
