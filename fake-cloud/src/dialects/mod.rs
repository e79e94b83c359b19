//! Dialects: the APIs vendors' clients speak, each a thin layer of paths, fields and error forms over the one model.
//!
//! Adding one is a folder with the same four files as the others and a line in [`ALL`]; the README says how.

mod dialect;
mod native;
mod request;

pub use dialect::Kind;
pub(crate) use dialect::{Denial, Dialect, Effect, Identity, Plan};
pub(crate) use request::{Answer, Call, Request};

/// All dialects.
pub const ALL: &[Kind] = &[native::KIND];
