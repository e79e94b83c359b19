//! Manifests as they were written: every value with its file, line and column.
//!
//! Reading is a library's work (`granit-parser`, which the project's YAML crate is built on); what is here turns its
//! events into a tree, bounds what anchors may expand to, and says clearly what is not a manifest.

mod node;
mod objects;
mod parse;
mod scalar;
mod source;

pub(crate) use node::{Node, Style, Value};
pub(crate) use objects::{Object, Objects, object_name};
pub use source::Source;
pub(crate) use source::{Place, Problem, Severity};
