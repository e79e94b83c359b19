//! Role-based access control: who may do what, from the roles and bindings in the store.

mod current;
mod escalation;
mod policy;
mod rule;

pub(crate) use current::Current;
pub(crate) use escalation::{Escalation, check as check_escalation};
pub(crate) use policy::Policy;
pub(crate) use rule::Rule;
