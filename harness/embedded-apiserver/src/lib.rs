//! A Kubernetes API server in the harness's process.
//!
//! Objects in memory, watches, TLS on loopback, client certificates and service account tokens, RBAC, admission and an
//! audit log. What a kind's fields mean is decided by `embedded-semantics`; this crate does the rest of what
//! kube-apiserver does with a request. It keeps nothing on disk and runs no controllers.

mod admission;
mod api;
pub mod audit;
mod auth;
mod bootstrap;
mod http;
mod issued;
mod logs;
mod managers;
mod server;
pub mod store;
mod verbs;
mod version;
mod write;

pub use api::{Limits, Partition};
pub use auth::attributes::Attributes;
pub use auth::authority::{AuthorityError, Credential};
pub use auth::user::User;
pub use issued::Issued;
pub use logs::{Container, Followed, LogLine, Logs};
pub use server::{Config, Running, Server, StartError};
pub use version::Version;
