//! The cloud itself: what exists and by which rules it changes.
//!
//! One file for each kind of object, and `cloud.rs` for the rules between kinds. Nothing here knows HTTP, a dialect or a
//! clock: the time is passed in, counted from any fixed moment, and must not go backwards. What happens by itself, such
//! as the end of provisioning, happens when the time passed in has reached it.

mod actions;
mod addresses;
mod aliases;
mod auxiliaries;
mod checks;
mod cloud;
mod ids;
mod instances;
mod lists;
mod load_balancers;
mod names;
mod refusal;
mod routes;
mod stale;
#[cfg(test)]
mod tests;
mod view;

pub use actions::Action;
pub use auxiliaries::AuxSpec;
pub use checks::{check_port, check_protocol, check_source_ranges, parse_cidr};
pub use cloud::{Cloud, Dependents};
pub use ids::IdForm;
pub use load_balancers::{Deleted, Families, GoneBackends, LbSpec, Naming};
pub use refusal::Refusal;
pub use routes::RouteTarget;
pub use view::View;
