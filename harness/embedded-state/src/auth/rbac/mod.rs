//! Role-based access control from the roles and bindings in the store.

mod current;
mod escalation;
mod policy;
mod rule;

pub use current::Current;
pub use escalation::{Escalation, check as check_escalation};
pub use policy::Policy;
pub use rule::Rule;
