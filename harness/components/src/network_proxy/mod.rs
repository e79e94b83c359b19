//! The API server's network proxy (KEP-1281): how an API server is told of it, and its protocol, spoken by hand.
//!
//! Sources: `k8s.io/apiserver` `pkg/server/egressselector` and `pkg/apis/apiserver/v1beta1`. Knows no cluster and no check.

mod bench;
mod egress;
mod probe;
mod sockets;

pub use bench::{Bench, Programs};
pub use egress::{EgressFault, FOLDER, faults};
pub use probe::{Asked, Echo, Tunnel};
/// The reference, server and agents.
pub use recording_proxy::tunnel;
