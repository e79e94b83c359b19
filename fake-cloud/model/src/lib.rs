//! The cloud itself: the objects and the rules of their changes.
//!
//! There is one file for each kind of object, and `cloud.rs` for the rules between kinds. Nothing here knows
//! HTTP, a dialect or a clock: the time is an argument, counted from any fixed moment, and must not go
//! backwards. Events such as the end of provisioning happen when the given time has reached them.

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
mod reservations;
mod routes;
mod stale;
#[cfg(test)]
mod tests;
mod tuning;
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
