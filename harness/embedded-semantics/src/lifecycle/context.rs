//! The input of a decision from outside.

use crate::alloc::Allocator;

/// The input of a decision from outside: time, identity and the cluster's addresses.
#[derive(Debug)]
pub struct Context<'a> {
    /// The current time, RFC 3339 with whole seconds in UTC.
    pub now: &'a str,
    /// The current time with microseconds.
    pub now_micro: &'a str,
    /// The uid for a created object.
    pub uid: &'a str,
    /// Five characters that complete a generateName, drawn from `bcdfghjklmnpqrstvwxz2456789`.
    pub suffix: &'a str,
    /// The cluster's Service addresses and ports.
    pub allocator: &'a mut Allocator,
    /// The Kubernetes minor version.
    pub minor: u32,
    /// Whether nothing will be stored: allocations are shown in the answer and then released.
    pub dry_run: bool,
}
