//! The controllers for Nodes with silent kubelets, and for the Pods on them.

pub(crate) mod eviction;
pub(crate) mod health;
pub(crate) mod orphans;
mod rounds;
mod verdict;
