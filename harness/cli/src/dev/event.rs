//! The events that `dev` waits for.

use std::path::PathBuf;

/// Something that the loop waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A file was created, changed or removed.
    Changed(PathBuf),
    /// A key was pressed.
    Key(u8),
    /// The run has ended with this exit code.
    Ended(u8),
    /// A signal asks the program to end.
    Interrupted,
}
