//! The form of Kubernetes objects: which kinds there are, how their objects are encoded and decoded, and how
//! selectors and patches apply to them. Pure functions and tables over JSON values.
//!
//! The behaviour follows kube-apiserver 1.36. The crate `embedded-semantics` decides what the values of
//! fields mean.

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
