//! What a decision needs from outside.

use crate::alloc::Allocator;

/// What a decision needs from outside: time, identity and the cluster's addresses.
#[derive(Debug)]
pub struct Context<'a> {
    /// Now, RFC 3339 with whole seconds in UTC.
    pub now: &'a str,
    /// Now with microseconds.
    pub now_micro: &'a str,
    /// The uid of an object that is created.
    pub uid: &'a str,
    /// Five characters that complete a generateName, drawn from `bcdfghjklmnpqrstvwxz2456789`.
    pub suffix: &'a str,
    /// The cluster's Service addresses and ports.
    pub allocator: &'a mut Allocator,
    /// The Kubernetes minor version.
    pub minor: u32,
    /// Nothing will be stored: allocations are shown in the answer and given back.
    pub dry_run: bool,
}
