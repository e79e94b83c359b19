//! A result for people, for programs, and for code review.

mod json;
mod sarif;
mod text;

pub(crate) use json::json;
pub(crate) use sarif::sarif;
pub(crate) use text::text;

use crate::check::Cell;
use crate::finding::Finding;

/// What a check found.
#[derive(Debug)]
pub(crate) struct Checkup {
    pub(crate) cells: Vec<Cell>,
    pub(crate) findings: Vec<Finding>,
    /// What was assumed for want of anything written, worth saying.
    pub(crate) assumptions: Vec<String>,
    /// Why there are no cells.
    pub(crate) unreadable: Option<String>,
}

impl Checkup {
    /// Cells that do not boot in every order.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| !cell.outcome.is_boot())
    }

    /// Where the first CCM's failures are shown in code review.
    pub(crate) fn states(&self) -> usize {
        self.cells.iter().map(|cell| cell.states).max().unwrap_or(0)
    }
}
