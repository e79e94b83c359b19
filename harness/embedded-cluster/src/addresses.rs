//! The addresses of a cluster: of its machines, its Pods and its Services. Only the loopback addresses of
//! machines are reachable.

use embedded_controllers::{PodCidrs, PodRange};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};

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

/// The first loopback address of this cluster. Clusters on the same computer use different blocks of
/// 127.16.0.0 to 127.63.255.255, drawn at random.
pub(crate) fn first_loopback() -> Ipv4Addr {
    Ipv4Addr::new(127, fastrand::u8(16..64), fastrand::u8(..), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_its_addresses() {
        assert_eq!((ipv4(0), ipv6(IpFamilies::Ipv4, 0)), (Ipv4Addr::new(10, 89, 0, 1), None));
        assert_eq!(ipv6(IpFamilies::Dual, 255), Some(Ipv6Addr::new(0xfd00, 0x10, 0x89, 0, 0, 0, 0, 0x100)));
        assert_eq!(services(IpFamilies::Dual), SERVICES);
        assert_eq!(pods(IpFamilies::Ipv4, 3), PodCidrs::Allocated(vec![PODS[0]]));
        assert_eq!(pods(IpFamilies::Dual, 5000), PodCidrs::Allocated(MANY_PODS.to_vec()));
    }
}
