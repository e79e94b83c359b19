//! The decisions of a Kubernetes API server about the values in objects, as pure functions and tables over
//! JSON values: defaults, validation and allocation. The form of objects is in `embedded-objects`.
//!
//! No I/O, no clock, no randomness of its own: the caller passes times, uids and the allocator in. The
//! behaviour follows kube-apiserver 1.36; the recorded exchanges that the tests replay come from 1.36.2.

pub mod alloc;
pub mod lifecycle;
