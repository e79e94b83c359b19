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

/// The loopback addresses of this cluster's machines: a part of 127.16.0.0 to 127.63.255.255 that no other cluster on the
/// same computer uses.
#[derive(Debug)]
pub(crate) struct Loopback {
    /// The address of the first machine; the others follow.
    pub(crate) first: Ipv4Addr,
    /// Marks its blocks as taken, for this process and others, until the cluster has ended.
    _held: Vec<UdpSocket>,
}

/// The port at the last address of a block that marks it as taken.
const MARK: u16 = 10_009;
/// How often a place is drawn until its blocks are free: hardly any are taken, even with hundreds of clusters.
const ATTEMPTS: usize = 100;
/// The addresses of a block.
const BLOCK: u32 = 256;
/// The blocks in the range.
const BLOCKS: u32 = 48 * BLOCK;

/// Free addresses for this many machines, at a place that is drawn at random.
pub(crate) fn loopback(machines: usize) -> Loopback {
    // The first address of a block is not used.
    let needed = u32::try_from(machines).unwrap_or(u32::MAX).saturating_add(1).div_ceil(BLOCK).min(BLOCKS);
    let range = Ipv4Addr::new(127, 16, 0, 0).to_bits();
    let drawn = || range + BLOCK * fastrand::u32(..=BLOCKS - needed);
    let mark = |block: u32| UdpSocket::bind((Ipv4Addr::from_bits(block + BLOCK - 1), MARK)).ok();
    let free = std::iter::repeat_with(drawn).take(ATTEMPTS).find_map(|start| {
        let held: Option<Vec<UdpSocket>> = (0..needed).map(|at| mark(start + BLOCK * at)).collect();
        Some((start, held?))
    });
    // Where sockets cannot be made, clusters differ only by chance.
    let (start, held) = free.unwrap_or_else(|| (drawn(), Vec::new()));
    Loopback { first: Ipv4Addr::from_bits(start + 1), _held: held }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_different_loopback_addresses() {
        let all: Vec<(Loopback, u32)> = [3, 255, 256, 5000]
            .iter()
            .cycle()
            .take(200)
            .map(|machines| (loopback(*machines), *machines as u32))
            .collect();
        let mut ranges: Vec<(u32, u32)> =
            all.iter().map(|(one, machines)| (one.first.to_bits(), one.first.to_bits() + machines)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:?}");
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
