//! What manifests say about the boot of a cluster, as data that the boot model, the lint and `fix` use.
//!
//! `manifest` reads the files, `accept` says which objects an API server accepts, `workload` and `known` interpret them
//! (`known` needs other objects as well: roles, quotas, webhooks, the way to the API server), and `cluster` describes the
//! cluster to which they are applied. Nothing here needs a cluster, a clock or a network.

pub mod accept;
mod aliases;
mod cloud_urls;
pub mod cluster;
pub mod dns;
pub mod known;
pub mod manifest;
pub mod workload;
