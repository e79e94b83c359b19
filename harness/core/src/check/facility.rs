//! What the machinery around the CCM can do.

use std::fmt;

/// What the machinery around the CCM must be able to do; where it cannot, the check is 'not observable'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Facility {
    /// Machines of the cloud can be put there, changed and removed.
    Machines,
    /// Load balancers can be created, changed and removed without the CCM.
    Objects,
    /// Routes can be created, changed and removed without the CCM.
    Routes,
    /// What the cloud holds can be read.
    Inventory,
    /// Every call that the CCM makes to the cloud is recorded, by replica.
    Journal,
    /// The cloud's answers can be made wrong, late or absent.
    Faults,
    /// Calls to the cloud can be held before they take effect.
    Barriers,
    /// How the cloud as a whole behaves can be changed: sizes of pages, times of provisioning.
    Settings,
    /// A credential that the cloud accepts can be replaced by another.
    Credentials,
    /// The harness deploys, restarts and removes the CCM itself.
    CcmControl,
    /// A CCM process can be killed, frozen and thawed inside its node.
    ProcessControl,
    /// A real kubelet can be restarted so that its Node registers anew.
    KubeletControl,
    /// The pod network can be absent or present as the check wants it.
    PodNetworkControl,
    /// The cluster can be kept from giving new Nodes pod CIDRs.
    PodCidrControl,
    /// A machine can be switched off and on.
    NodeControl,
    /// A machine can be cut off from the API server and from the cloud.
    LinkControl,
    /// The CCM boots on the cluster that it initialises, not beside a control plane elsewhere.
    BootsInside,
    /// The cluster has one node and no more.
    SingleNode,
    /// A replica of the CCM runs that does not lead.
    Standby,
    /// The CCM's watches of the API server can be ended and made too old to go on.
    WatchControl,
    /// The API server can be put out of reach of the CCM, and of one replica of it.
    ApiControl,
    /// What the CCM asks of the API server is recorded, with the answers.
    AuditLog,
    /// What listens on the nodes' network can be connected to.
    HostPorts,
    /// The API server reaches kubelets at the addresses of their Nodes.
    KubeletAddresses,
    /// Programs on the machines may know the cloud by a name, which those find that ask their machine's resolver, and
    /// those that ask cluster DNS when it runs.
    CloudName,
    /// A further cluster can be made, with machines as a check wants them and a cloud of its own.
    OwnEnvironment,
    /// A kubelet can be made to run an image credential provider, and to pull images of a registry of ours.
    ImageCredentials,
    /// The API server has the network proxy under test, and the direct way to Nodes and Pods can be closed to it.
    NetworkProxy,
    /// Kubelets are real ones, and can be given a CSI driver under the name of a cloud's.
    CsiDrivers,
    /// The manifests as shipped ask for more than one Pod of the CCM.
    ShippedReplicas,
}

impl Facility {
    /// Every facility.
    pub const ALL: &[Facility] = &[
        Facility::Machines,
        Facility::Objects,
        Facility::Routes,
        Facility::Inventory,
        Facility::Journal,
        Facility::Faults,
        Facility::Barriers,
        Facility::Settings,
        Facility::Credentials,
        Facility::CcmControl,
        Facility::ProcessControl,
        Facility::KubeletControl,
        Facility::PodNetworkControl,
        Facility::PodCidrControl,
        Facility::NodeControl,
        Facility::LinkControl,
        Facility::BootsInside,
        Facility::SingleNode,
        Facility::Standby,
        Facility::WatchControl,
        Facility::ApiControl,
        Facility::AuditLog,
        Facility::HostPorts,
        Facility::KubeletAddresses,
        Facility::CloudName,
        Facility::OwnEnvironment,
        Facility::ImageCredentials,
        Facility::NetworkProxy,
        Facility::CsiDrivers,
        Facility::ShippedReplicas,
    ];

    /// Whether it is a cluster's: its backend has or lacks it.
    pub fn is_of_the_cluster(self) -> bool {
        !Facility::OF_THE_CLOUD.contains(&self) && !Facility::OF_THE_RUN.contains(&self)
    }

    /// Those of the harness itself and of what is run: its topology, how the CCM is deployed, how many replicas it has,
    /// whether it makes its clusters and clouds itself.
    pub const OF_THE_RUN: &[Facility] = &[
        Facility::CcmControl,
        Facility::BootsInside,
        Facility::SingleNode,
        Facility::Standby,
        Facility::OwnEnvironment,
        Facility::ShippedReplicas,
    ];

    /// Those that rest on the CCM's Pods being on the cluster that it serves.
    pub const OF_PODS_INSIDE: &[Facility] = &[Facility::BootsInside];

    /// Those of the cloud, which its driver has or lacks.
    pub const OF_THE_CLOUD: &[Facility] = &[
        Facility::Machines,
        Facility::Objects,
        Facility::Routes,
        Facility::Inventory,
        Facility::Journal,
        Facility::Faults,
        Facility::Barriers,
        Facility::Settings,
        Facility::Credentials,
    ];
}

impl fmt::Display for Facility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Facility::Machines => "machines",
            Facility::Objects => "objects",
            Facility::Routes => "routes",
            Facility::Inventory => "inventory",
            Facility::Journal => "journal",
            Facility::Faults => "faults",
            Facility::Barriers => "barriers",
            Facility::Settings => "settings",
            Facility::Credentials => "credentials",
            Facility::CcmControl => "ccm-control",
            Facility::ProcessControl => "process-control",
            Facility::KubeletControl => "kubelet-control",
            Facility::PodNetworkControl => "pod-network-control",
            Facility::PodCidrControl => "pod-cidr-control",
            Facility::NodeControl => "node-control",
            Facility::LinkControl => "link-control",
            Facility::BootsInside => "boots-inside",
            Facility::SingleNode => "single-node",
            Facility::Standby => "standby",
            Facility::WatchControl => "watch-control",
            Facility::ApiControl => "api-control",
            Facility::AuditLog => "audit-log",
            Facility::HostPorts => "host-ports",
            Facility::KubeletAddresses => "kubelet-addresses",
            Facility::CloudName => "cloud-name",
            Facility::OwnEnvironment => "own-environment",
            Facility::ImageCredentials => "image-credentials",
            Facility::NetworkProxy => "network-proxy",
            Facility::CsiDrivers => "csi-drivers",
            Facility::ShippedReplicas => "shipped-replicas",
        })
    }
}

/// A set of facilities, as a table of checks can hold it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Facilities(u32);

impl Facilities {
    /// These.
    pub const fn of(facilities: &[Facility]) -> Facilities {
        Facilities(0).and(facilities)
    }

    /// These as well.
    pub const fn and(mut self, more: &[Facility]) -> Facilities {
        let mut index = 0;
        while index < more.len() {
            self.0 |= 1 << more[index] as u32;
            index += 1;
        }
        self
    }

    /// Without these.
    pub const fn without(self, fewer: &[Facility]) -> Facilities {
        Facilities(self.0 & !Facilities::of(fewer).0)
    }

    /// Whether it is one of them.
    pub const fn contains(self, facility: Facility) -> bool {
        self.0 & (1 << facility as u32) != 0
    }

    /// Each of them, in the order of [`Facility::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Facility> {
        Facility::ALL.iter().copied().filter(move |facility| self.contains(*facility))
    }
}

impl fmt::Debug for Facilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        const SET: Facilities = Facilities::of(&[Facility::Faults, Facility::Machines, Facility::Faults]);
        assert_eq!(SET.iter().collect::<Vec<_>>(), [Facility::Machines, Facility::Faults]);
        assert_eq!(SET.without(&[Facility::Faults]), Facilities::of(&[Facility::Machines]));
        assert_eq!(Facilities::of(Facility::ALL).iter().count(), Facility::ALL.len());
        assert!(Facilities::of(Facility::ALL).contains(Facility::BootsInside));
        assert_eq!(Facilities::default().iter().next(), None);
    }
}
