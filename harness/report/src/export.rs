//! The results of a run in the formats of other tools, created from its report.

mod otlp;
mod prow;
mod sarif;

pub use otlp::to_otlp;
pub use prow::{ProwFile, to_prow};
pub use sarif::to_sarif;
