//! What exists besides the workloads: objects that they refer to, permissions, webhooks.

mod accounts;
mod address;
mod api_server;
mod classes;
mod evaluation;
mod expressions;
mod host;
mod kubeconfig;
mod kubeconfig_text;
mod leases;
mod matching;
mod pod_security;
mod policies;
mod quotas;
mod readable;
mod references;
mod request;
mod requests;
mod resources;
mod rights;
mod roles;
mod webhooks;

pub use api_server::{ApiServer, api_server, own_identity};
pub use evaluation::Truth;
pub use expressions::denied_ordinary_pods;
pub use host::in_cluster;
pub use policies::apply as apply_policies;
pub use references::Assumed;
pub use references::{made_by_others, missing};
pub use rights::{Gap, Need, gaps};
pub use webhooks::{Webhook, webhooks};
