//! Machines and their kubelets.

pub(crate) mod fleet;
pub(crate) mod object;
pub(crate) mod wheel;
