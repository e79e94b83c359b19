//! Expectations of checks about Nodes, Services and their resources in the cloud, as text and as matchers. Pure
//! functions.

mod balancers;
mod nodes;
mod services;
#[cfg(test)]
pub(super) mod tests;

pub use balancers::{at_least_one, no_other_than, nothing_left, one_active, one_balancer, reaches, targets};
pub use nodes::{
    addressed, expected_labels, has_addresses, has_labels, initialised, initialised_as, missing_metadata,
    untouched,
};
pub use services::{keeps_finalizer, lacks_finalizer, publishes, publishes_nothing, waits_to_be_deleted};
