//! Patches: how a change that is sent becomes a whole object.

mod json;
mod merge;

pub use json::json;
pub use merge::merge;
