//! The boot as rules: which premises make a fact true, and in which orders Pods may be bound.
//!
//! Facts only ever become true, so everything except the binding of Pods has the same outcome in every order. What does
//! depend on the order, which Pod gets a Node or a port first, is explored in full.

mod asked;
mod build;
mod build_backends;
mod build_nodes;
mod build_pods;
mod conditions;
mod explore;
mod fact;
mod ordinary;
mod reduce;
mod spread;
mod static_pods;
mod verdict;

pub(crate) use build::{Model, Set};
pub(crate) use explore::State;
pub(crate) use fact::{Change, Fact};
pub use verdict::{Eviction, Outcome};
pub(crate) use verdict::{Judged, judge};
