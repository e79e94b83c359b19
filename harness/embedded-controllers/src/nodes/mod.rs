//! Machines and their kubelets.

pub(crate) mod fleet;
pub(crate) mod kubelets;
pub(crate) mod object;
mod serving;
