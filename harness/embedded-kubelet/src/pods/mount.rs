//! What a program sees of this machine's files, and where.

use std::path::PathBuf;

/// One file or folder and where the program shall see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is on this computer.
    pub(crate) source: PathBuf,
    /// The absolute path the program uses.
    pub(crate) target: PathBuf,
    /// Whether the program can only read it.
    pub(crate) read_only: bool,
}

impl Mount {
    /// One that the program can write to.
    pub(crate) fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { source: source.into(), target: target.into(), read_only: false }
    }

    /// One that it can only read.
    pub(crate) fn read_only(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { read_only: true, ..Mount::new(source, target) }
    }
}
