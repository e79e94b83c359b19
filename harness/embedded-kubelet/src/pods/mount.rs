//! The files of this machine that a program can see, and their paths.

use std::path::PathBuf;

/// One file or folder and its path for the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The path on this computer.
    pub(crate) source: PathBuf,
    /// The absolute path for the program.
    pub(crate) target: PathBuf,
    /// Whether the program can only read it.
    pub(crate) read_only: bool,
}

impl Mount {
    /// A mount that the program can write to.
    pub(crate) fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { source: source.into(), target: target.into(), read_only: false }
    }

    /// A mount that the program can only read.
    pub(crate) fn read_only(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { read_only: true, ..Mount::new(source, target) }
    }
}
