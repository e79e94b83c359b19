//! Patches: how a change that is sent becomes a whole object.

mod json;
mod merge;
mod strategic;

pub use json::json;
pub use merge::merge;
pub use strategic::strategic;
