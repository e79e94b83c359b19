//! Manifests as they are written: every value with its file, line and column.
//!
//! A library reads the YAML (`granit-parser`, on which the project's YAML crate is built). This module builds a tree from
//! its events, limits the expansion of anchors, and reports clearly what is not a manifest.

mod changed;
mod node;
mod objects;
mod parse;
mod placeholders;
mod scalar;
mod source;

pub use node::{Entry, Node, Style, Value};
pub use objects::{Object, Objects, object_name};
pub use source::{Place, Problem, STDIN, Severity, Source};
