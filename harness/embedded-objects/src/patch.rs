//! Patches: how a submitted change becomes a complete object.

mod apply;
mod configure;
mod fit;
mod json;
mod managed;
mod merge;
mod owned;
mod strategic;

pub use apply::{Applier, apply};
pub use configure::configure;
pub use fit::{Form, fit};
pub use json::json;
pub use managed::note_update;
pub use merge::merge;
pub use strategic::strategic;
