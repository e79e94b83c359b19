//! A Kubernetes API server in the harness's process.
//!
//! Objects in memory, watches, TLS on loopback, client certificates and service account tokens, RBAC,
//! admission and an audit log. The crate `embedded-semantics` decides what a kind's fields mean, and
//! `embedded-state` has the objects and rights; this crate does the rest of what kube-apiserver does with a
//! request. It keeps nothing on disk and runs no controllers.

mod admission;
mod bootstrap;
mod http;
mod managers;
mod server;
mod verbs;
mod write;

pub use embedded_state::auth::attributes::Attributes;
pub use embedded_state::auth::authority::{AuthorityError, Credential};
pub use embedded_state::auth::user::User;
pub use embedded_state::{
    Container, Followed, Issued, Limits, LogLine, Logs, Partition, RequestEffect, RequestFault,
    RequestFaultState, RequestFaults, RequestMatch, Version,
};
pub use embedded_state::{audit, store};
pub use server::{Config, Running, Server, StartError};
