//! Label and field selectors: which objects a list, a watch or a deletion of a collection selects.

mod fields;
mod labels;

pub use fields::Fields;
pub use labels::{Labels, Requirement};
