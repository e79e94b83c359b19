//! Which objects a list, a watch or a deletion of many means: label and field selectors.

mod fields;
mod labels;

pub use fields::Fields;
pub use labels::{Labels, Requirement};
