//! What a Kubernetes API server decides about objects, as pure functions and tables over JSON values.
//!
//! No I/O, no clock, no randomness of its own: the caller passes times, uids and the allocator in.
//! The decisions follow kube-apiserver 1.36; the recorded exchanges the tests replay come from 1.36.2.

pub mod alloc;
pub mod cause;
pub mod discovery;
pub mod fields;
pub mod kinds;
pub mod lifecycle;
pub mod patch;
mod rules;
pub mod schema;
pub mod select;
pub mod size;
pub mod status;
mod structural;
pub mod table;
pub mod typed;
mod value;
pub mod wire;

pub use rules::quantity::billionths;
