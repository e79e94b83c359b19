//! First steps and matchers that checks of several areas share. A helper that only one area uses is in the
//! crate of that area.

pub mod failures;
pub mod joining;
pub mod leases;
pub mod observing;
pub mod port_parts;
pub mod routed_node;
pub mod services;
