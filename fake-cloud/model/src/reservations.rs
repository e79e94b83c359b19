//! Addresses of objects that exist before their load balancer.

use super::{Cloud, Refusal};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

impl Cloud {
    /// A public IPv4 address for an object that exists before its load balancer. Neither a load balancer has
    /// it, nor is it one of `others`.
    ///
    /// # Errors
    /// When no address is left.
    pub fn free_address(&mut self, others: BTreeSet<IpAddr>, now: Duration) -> Result<IpAddr, Refusal> {
        self.load_balancers.settle(now);
        self.load_balancers.free_address(others)
    }
}
