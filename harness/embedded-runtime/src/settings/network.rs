//! The pod network, addresses of Pods and Services, and names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

/// The cluster's pod network. Without it kubelets stay NotReady and Pods that are not on the host network do not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodNetwork {
    /// There is no pod network.
    None,
    /// It works on each node as soon as the kubelet runs.
    Independent,
    /// It works on a node once the Node has an internal address, as with many clouds.
    WaitsForAddresses,
    /// It keeps Pods off each node with a startup taint, which it removes when it works.
    StartupTaint {
        /// The taint's key. Kubelets register with the taint ([`NodeSpec::taints`](super::NodeSpec::taints)).
        key: String,
        /// Whether it works only once the Node has an internal address, as Cilium under kops.
        waits_for_addresses: bool,
    },
}

/// The cluster's DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dns {
    /// No name of the cluster resolves.
    Absent,
    /// A Deployment `coredns` and a Service `kube-dns` exist, as on a cluster made by kubeadm. This DNS knows
    /// [`Settings::names`](super::Settings::names); for all other names programs use this computer's
    /// resolver.
    Simulated,
}

/// Whether cluster IPs work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceVip {
    /// Programs get the cluster IP of the Service `kubernetes`, which does not work, as before kube-proxy runs.
    Absent,
    /// Programs get the loopback address of the API server instead, which works.
    Shortcut,
}

/// The pod address ranges of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodCidrs {
    /// Nodes get none, as with `--allocate-node-cidrs=false`.
    None,
    /// Each Node gets the first free part of each of these, as with `--cluster-cidr`: one range, or one of
    /// each family.
    Allocated(Vec<PodRange>),
}

/// A range of pod addresses that is divided among the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodRange {
    /// The cluster's range.
    pub cluster: IpNet,
    /// The length of each node's prefix in bits.
    pub node_prefix: u8,
}

impl PodRange {
    /// 10.244.0.0/16 in parts of 256 addresses, as with kubeadm and kind: enough for 256 machines.
    pub const DEFAULT: PodRange = PodRange {
        cluster: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 244, 0, 0), 16)),
        node_prefix: 24,
    };
}

/// How a cluster's range is divided.
impl PodRange {
    /// The number of parts.
    #[must_use]
    pub fn count(self) -> u32 {
        1_u32
            .checked_shl(u32::from(self.node_prefix.saturating_sub(self.cluster.prefix_len())))
            .unwrap_or(u32::MAX)
    }

    /// How many bits the number of a part is shifted in an address.
    fn shift(self) -> u32 {
        u32::from(self.cluster.max_prefix_len().saturating_sub(self.node_prefix))
    }

    /// The part with this number; `None` if there is none.
    #[must_use]
    pub fn part(self, index: u32) -> Option<IpNet> {
        let offset = u128::from(index).checked_shl(self.shift())?;
        let address: IpAddr = match self.cluster {
            IpNet::V4(cluster) => {
                Ipv4Addr::from_bits(cluster.network().to_bits().checked_add(u32::try_from(offset).ok()?)?)
                    .into()
            }
            IpNet::V6(cluster) => {
                Ipv6Addr::from_bits(cluster.network().to_bits().checked_add(offset)?).into()
            }
        };
        IpNet::new(address, self.node_prefix).ok()
    }

    /// The number of this part; `None` if it is not part of the cluster's range.
    #[must_use]
    pub fn index(self, part: IpNet) -> Option<u32> {
        if part.prefix_len() != self.node_prefix || !self.cluster.contains(&part) {
            return None;
        }
        let offset = match (part, self.cluster) {
            (IpNet::V4(part), IpNet::V4(cluster)) => {
                u128::from(part.network().to_bits().checked_sub(cluster.network().to_bits())?)
            }
            (IpNet::V6(part), IpNet::V6(cluster)) => {
                part.network().to_bits().checked_sub(cluster.network().to_bits())?
            }
            _ => return None,
        };
        u32::try_from(offset.checked_shr(self.shift())?).ok()
    }
}
