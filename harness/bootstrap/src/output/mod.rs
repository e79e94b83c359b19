//! Output of a result: text, JSON, and SARIF for code review.

mod json;
mod sarif;
mod text;

pub(crate) use json::json;
pub(crate) use sarif::sarif;
pub(crate) use text::text;

use crate::check::{Cell, Provided};
use crate::finding::Finding;

/// The result of a check.
#[derive(Debug)]
pub(crate) struct Checkup {
    pub(crate) cells: Vec<Cell>,
    pub(crate) findings: Vec<Finding>,
    /// Assumptions about the cluster that the output mentions.
    pub(crate) assumptions: Vec<String>,
    /// What happens when the missing Secrets and ConfigMaps exist, if that matters.
    pub(crate) provided: Option<Provided>,
    /// Why there are no cells, if so.
    pub(crate) unreadable: Option<String>,
}

impl Checkup {
    /// Cells that do not boot in every order.
    pub(crate) fn failing(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| !cell.outcome.is_boot())
    }
}
