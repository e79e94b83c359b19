//! Machines and their kubelets.

pub(crate) mod fleet;
pub(crate) mod kubelets;
mod serving;
