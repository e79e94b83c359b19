//! The public addresses of load balancers, from the ranges reserved for documentation (RFC 5737) and
//! benchmarks (RFC 2544), so that they can never belong to a real host.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// The number of addresses in each documentation range: those of a /24 without the first and the last.
const DOCUMENTATION_COUNT: u32 = 254;
/// First addresses of 203.0.113.0/24 and 198.51.100.0/24.
const DOCUMENTATION: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(198, 51, 100, 1)];
/// First address of 198.18.0.0/15.
const BENCHMARK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Addresses in 198.18.0.0/15 without the first and the last.
const BENCHMARK_COUNT: u32 = (1 << 17) - 2;

/// Assigns addresses in turn, so that a released one is reused as late as possible.
#[derive(Debug, Default)]
pub(super) struct AddressPool {
    next: u32,
}

impl AddressPool {
    /// An address that is not in use; `None` if all are.
    pub(super) fn take(&mut self, in_use: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let documentation = DOCUMENTATION_COUNT * 2;
        for step in 0..documentation {
            let index = (self.next + step) % documentation;
            let range = DOCUMENTATION[usize::from(index >= DOCUMENTATION_COUNT)];
            let address = nth(range, index % DOCUMENTATION_COUNT);
            if !in_use.contains(&address) {
                self.next = (index + 1) % documentation;
                return Some(address);
            }
        }
        (0..BENCHMARK_COUNT).map(|index| nth(BENCHMARK, index)).find(|address| !in_use.contains(address))
    }
}

/// The IPv6 address for an address of the pool: in 2001:db8::/32, reserved for documentation (RFC 3849), with
/// the IPv4 address as its last part.
pub(super) fn counterpart(address: IpAddr) -> IpAddr {
    const DOCUMENTATION: u128 = 0x2001_0db8 << 96;
    match address {
        IpAddr::V4(v4) => IpAddr::V6((DOCUMENTATION | u128::from(u32::from(v4))).into()),
        v6 @ IpAddr::V6(_) => v6,
    }
}

fn nth(first: Ipv4Addr, index: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(u32::from(first) + index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_go_round() {
        let mut pool = AddressPool::default();
        let mut used = BTreeSet::new();
        let mut taken = Vec::new();
        for _ in 0..600 {
            let address = pool.take(&used).expect("there are more");
            assert!(used.insert(address));
            taken.push(address.to_string());
        }
        assert_eq!(taken[0], "203.0.113.1");
        assert_eq!(taken[253], "203.0.113.254");
        assert_eq!(taken[254], "198.51.100.1");
        assert_eq!(taken[507], "198.51.100.254");
        assert_eq!(taken[508], "198.18.0.1");
        assert_eq!(taken[599], "198.18.0.92");
    }

    #[test]
    fn every_address_has_a_counterpart_of_the_other_family() {
        let address = counterpart(nth(DOCUMENTATION[0], 9));
        assert_eq!(address.to_string(), "2001:db8::cb00:710a");
        assert_eq!(counterpart(address), address);
    }

    #[test]
    fn one_given_back_is_the_last_to_be_used_again() {
        let mut pool = AddressPool::default();
        let none = BTreeSet::new();
        let first = pool.take(&none);
        assert_ne!(pool.take(&none), first);
    }

    #[test]
    fn an_end_comes_without_a_panic() {
        let mut pool = AddressPool::default();
        let mut used = BTreeSet::new();
        used.extend((0..DOCUMENTATION_COUNT).flat_map(|i| DOCUMENTATION.map(|range| nth(range, i))));
        used.extend((0..BENCHMARK_COUNT).map(|i| nth(BENCHMARK, i)));
        assert!(used.contains(&IpAddr::V4(Ipv4Addr::new(198, 19, 255, 254))));
        assert_eq!(pool.take(&used), None);
    }
}
