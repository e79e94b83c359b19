//! The form of Kubernetes objects: which kinds there are, how an object of each is written and read, and what a selector or a
//! patch makes of it. Pure functions and tables over JSON values.
//!
//! The decisions follow kube-apiserver 1.36. What the values of fields mean is decided in `embedded-semantics`.

pub mod cause;
pub mod discovery;
pub mod fields;
pub mod kinds;
pub mod patch;
pub mod rules;
pub mod schema;
pub mod select;
pub mod size;
pub mod status;
pub mod structural;
pub mod typed;
pub mod value;
pub mod wire;

pub use rules::quantity::billionths;
