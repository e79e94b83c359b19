//! Compares the boot model with reality: its results for manifest variants, and what clusters do with them.
//!
//! A *variant* is a folder of manifests with a line in `cases.yaml`, a *cell* one cluster to which it is applied. The
//! model's result and the measurement are independent of each other; only the table combines them.

mod bench;
mod cells;
mod embedded;
mod kind;
mod means;
mod observe;
mod play;
mod question;
mod random;
mod table;
mod variant;

pub use embedded::EmbeddedBench;
pub use kind::KindBench;
pub use question::{Question, given, questions, sample};
pub use random::random;
pub use table::{Measured, Row, Tally, show, tally};
