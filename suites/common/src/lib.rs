//! What checks of several areas begin with and look for. A helper of one area stays in the crate of that area.

pub mod failures;
pub mod joining;
pub mod leases;
pub mod observing;
pub mod port_parts;
pub mod routed_node;
pub mod services;
