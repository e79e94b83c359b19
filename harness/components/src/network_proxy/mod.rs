//! The API server's network proxy (KEP-1281): how an API server is configured for it, and an implementation of its
//! protocol.
//!
//! Sources: `k8s.io/apiserver` `pkg/server/egressselector` and `pkg/apis/apiserver/v1beta1`. Independent of clusters and
//! checks.

mod bench;
mod egress;
mod probe;
mod sockets;

pub use bench::{Bench, Programs};
pub use egress::{EgressFault, FOLDER, faults};
pub use probe::{Asked, Echo, Tunnel};
/// The reference, server and agents.
pub use recording_proxy::tunnel;
