//! What exists besides the workloads: objects that they refer to, permissions, webhooks.

mod policies;
mod references;
mod rights;
mod webhooks;

pub(crate) use policies::apply as apply_policies;
pub use references::Assumed;
pub(crate) use references::missing;
pub(crate) use rights::{Gap, Need, gaps};
pub(crate) use webhooks::{Webhook, namespace_labels, webhooks};
