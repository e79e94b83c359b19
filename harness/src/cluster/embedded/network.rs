//! The addresses of an embedded cluster: of its machines, its Pods and its Services. Nothing answers at them but at the
//! loopback addresses of machines.

use crate::cluster::Families;
use embedded_controllers::{PodCidrs, PodRange};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Machines' addresses are counted from here up.
const FIRST_NODE_IP: u32 = u32::from_be_bytes([10, 89, 0, 1]);
/// The same of the other family.
const FIRST_NODE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0x89, 0, 0, 0, 0, 1);
/// Networks of Services, as kubeadm and kind choose them.
const SERVICES: &str = "10.96.0.0/16";
const SERVICES_IPV6: &str = "fd00:10:96::/112";
/// Pod ranges of kind: enough for 256 machines.
const PODS: PodRange =
    PodRange { first: IpAddr::V4(Ipv4Addr::new(10, 244, 0, 0)), prefix: 16, node_prefix: 24 };
const PODS_IPV6: PodRange = PodRange {
    first: IpAddr::V6(Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0)),
    prefix: 56,
    node_prefix: 64,
};
/// Pod ranges of clusters that have more machines than that.
const MANY_PODS: PodRange =
    PodRange { first: IpAddr::V4(Ipv4Addr::new(10, 128, 0, 0)), prefix: 9, node_prefix: 25 };
const MANY_PODS_IPV6: PodRange = PodRange { prefix: 48, ..PODS_IPV6 };

/// The IPv4 address of the machine with this number.
pub(super) fn ipv4(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_NODE_IP + index)
}

/// The IPv6 address of the machine with this number, where there are both families.
pub(super) fn ipv6(families: Families, index: u32) -> Option<Ipv6Addr> {
    (families == Families::Both).then(|| Ipv6Addr::from_bits(FIRST_NODE_IPV6.to_bits() + u128::from(index)))
}

/// The networks of Services.
pub(super) fn services(families: Families) -> Vec<String> {
    let all = [SERVICES, SERVICES_IPV6].map(str::to_owned);
    all.into_iter().take(count(families)).collect()
}

/// The ranges of Pods for so many machines.
pub(super) fn pods(families: Families, machines: usize) -> PodCidrs {
    let all = if machines <= 256 { [PODS, PODS_IPV6] } else { [MANY_PODS, MANY_PODS_IPV6] };
    PodCidrs::Allocated(all.into_iter().take(count(families)).collect())
}

fn count(families: Families) -> usize {
    match families {
        Families::Ipv4 => 1,
        Families::Both => 2,
    }
}

/// Clusters side by side on one machine have loopback addresses of their own: a block of 127.16.0.0 to 127.63.255.255,
/// drawn at random.
pub(super) fn first_loopback() -> u32 {
    const BLOCKS: u32 = 48 << 8;
    let drawn = RandomState::new().hash_one(std::process::id()) % u64::from(BLOCKS);
    u32::from_be_bytes([127, 16, 0, 1]) + (u32::try_from(drawn).unwrap_or_default() << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_addresses() {
        assert_eq!((ipv4(0), ipv6(Families::Ipv4, 0)), (Ipv4Addr::new(10, 89, 0, 1), None));
        assert_eq!(ipv6(Families::Both, 255), Some(Ipv6Addr::new(0xfd00, 0x10, 0x89, 0, 0, 0, 0, 0x100)));
        assert_eq!(services(Families::Both), [SERVICES, SERVICES_IPV6]);
        assert_eq!(pods(Families::Ipv4, 3), PodCidrs::Allocated(vec![PODS]));
        assert_eq!(pods(Families::Both, 5000), PodCidrs::Allocated(vec![MANY_PODS, MANY_PODS_IPV6]));
    }
}
