//! The addresses of a cluster: of its machines, its Pods and its Services. Only the loopback addresses of
//! machines are reachable.

use embedded_controllers::{PodCidrs, PodRange};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

/// The IP families of machines, Pods and Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpFamilies {
    /// Only IPv4.
    Ipv4,
    /// IPv4 and IPv6, the first preferred.
    Dual,
}

impl IpFamilies {
    fn count(self) -> usize {
        match self {
            IpFamilies::Ipv4 => 1,
            IpFamilies::Dual => 2,
        }
    }
}

/// The IPv4 address of the first machine; the others follow.
const FIRST_NODE_IPV4: Ipv4Addr = Ipv4Addr::new(10, 89, 0, 1);
/// The same for IPv6.
const FIRST_NODE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0x89, 0, 0, 0, 0, 1);
/// Networks of Services, as kubeadm and kind choose them.
const SERVICES: [&str; 2] = ["10.96.0.0/16", "fd00:10:96::/112"];
/// Pod ranges of kind: enough for 256 machines.
const PODS: [PodRange; 2] = [PodRange::DEFAULT, pods_ipv6(56)];
/// Pod ranges of clusters that have more machines than that.
const MANY_PODS: [PodRange; 2] = [
    PodRange { cluster: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 128, 0, 0), 9)), node_prefix: 25 },
    pods_ipv6(48),
];

const fn pods_ipv6(prefix: u8) -> PodRange {
    let first = Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0);
    PodRange { cluster: IpNet::V6(Ipv6Net::new_assert(first, prefix)), node_prefix: 64 }
}

/// The IPv4 address of the machine with this number, from 0 up.
pub(crate) fn ipv4(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_NODE_IPV4.to_bits() + index)
}

/// The IPv6 address of the machine with this number, if the cluster has both families.
pub(crate) fn ipv6(families: IpFamilies, index: u32) -> Option<Ipv6Addr> {
    let address = || Ipv6Addr::from_bits(FIRST_NODE_IPV6.to_bits() + u128::from(index));
    (families == IpFamilies::Dual).then(address)
}

/// The networks of Services.
pub(crate) fn services(families: IpFamilies) -> Vec<String> {
    SERVICES.into_iter().take(families.count()).map(str::to_owned).collect()
}

/// The ranges of Pods for this many machines.
pub(crate) fn pods(families: IpFamilies, machines: usize) -> PodCidrs {
    let all = if machines <= 256 { PODS } else { MANY_PODS };
    PodCidrs::Allocated(all.into_iter().take(families.count()).collect())
}

/// The loopback addresses of this cluster's machines: a block of 127.16.0.0 to 127.63.255.255 that no other cluster on
/// the same computer uses.
#[derive(Debug)]
pub(crate) struct Loopback {
    /// The address of the first machine; the others follow.
    pub(crate) first: Ipv4Addr,
    /// Marks the block as taken, for this process and others, until the cluster has ended.
    _held: Option<UdpSocket>,
}

/// The port at the last address of a block that marks it as taken.
const MARK: u16 = 10_009;
/// How many blocks are tried; one in a hundred is taken at most.
const ATTEMPTS: usize = 100;

/// A block that was free, drawn at random.
pub(crate) fn loopback() -> Loopback {
    let block = || (fastrand::u8(16..64), fastrand::u8(..));
    let first = |(a, b)| Ipv4Addr::new(127, a, b, 1);
    let free = std::iter::repeat_with(block).take(ATTEMPTS).find_map(|(a, b)| {
        let held = UdpSocket::bind((Ipv4Addr::new(127, a, b, 255), MARK)).ok()?;
        Some(Loopback { first: first((a, b)), _held: Some(held) })
    });
    // Where no socket can be made, blocks differ only by chance.
    free.unwrap_or_else(|| Loopback { first: first(block()), _held: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_different_loopback_addresses() {
        let all: Vec<Loopback> = (0..400).map(|_| loopback()).collect();
        let distinct: std::collections::BTreeSet<Ipv4Addr> = all.iter().map(|one| one.first).collect();
        assert_eq!(distinct.len(), all.len(), "by chance, about six would be the same");
    }

    #[test]
    fn every_family_has_its_addresses() {
        assert_eq!((ipv4(0), ipv6(IpFamilies::Ipv4, 0)), (Ipv4Addr::new(10, 89, 0, 1), None));
        assert_eq!(ipv6(IpFamilies::Dual, 255), Some(Ipv6Addr::new(0xfd00, 0x10, 0x89, 0, 0, 0, 0, 0x100)));
        assert_eq!(services(IpFamilies::Dual), SERVICES);
        assert_eq!(pods(IpFamilies::Ipv4, 3), PodCidrs::Allocated(vec![PODS[0]]));
        assert_eq!(pods(IpFamilies::Dual, 5000), PodCidrs::Allocated(MANY_PODS.to_vec()));
    }
}
