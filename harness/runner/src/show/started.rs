//! What a run is about to do, for each form in which it is shown.

use crate::planned::Planned;

/// What a run is about to do.
pub(super) struct Started<'a> {
    /// Every check.
    pub(super) planned: &'a [Planned],
    /// How many of them run.
    pub(super) total: usize,
}
