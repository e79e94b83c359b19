//! The facilities of the environment around the CCM.

use super::named::named;
use std::fmt;

named! {
    /// A facility that the environment around the CCM must have for a check; without it the check is 'not observable'.
    ///
    /// ```
    /// # use harness_core::check::*; struct Cx; async fn body(_: &Cx) -> Verdict { Ok(()) }
    /// const CHECK: Check<Cx> =
    ///     Check::own("ACME-LB-01", "restricts clients", "Acme handbook", |cx| Box::pin(body(cx)))
    ///         .with(&[Facility::Faults, Facility::AuditLog]);
    /// assert!(CHECK.facilities.contains(Facility::Faults));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Facility {
        /// Machines can be created, changed and removed in the cloud.
        Machines = "machines",
        /// Load balancers can be created, changed and removed without the CCM.
        Objects = "objects",
        /// Routes can be created, changed and removed without the CCM.
        Routes = "routes",
        /// What the cloud holds can be read.
        Inventory = "inventory",
        /// All calls of the CCM to the cloud are recorded, by replica.
        Journal = "journal",
        /// The cloud's answers can be made wrong, late or lost.
        Faults = "faults",
        /// Calls to the cloud can be held before they take effect.
        Barriers = "barriers",
        /// Settings of the cloud as a whole can be changed: page sizes, provisioning times.
        Settings = "settings",
        /// A credential that the cloud accepts can be replaced by another.
        Credentials = "credentials",
        /// The harness deploys, restarts and removes the CCM itself.
        CcmControl = "ccm-control",
        /// A CCM process can be killed, frozen and thawed inside its node.
        ProcessControl = "process-control",
        /// A real kubelet can be restarted so that its Node registers again.
        KubeletControl = "kubelet-control",
        /// The pod network can be set up or removed.
        PodNetworkControl = "pod-network-control",
        /// The cluster can be prevented from assigning pod CIDRs to new Nodes.
        PodCidrControl = "pod-cidr-control",
        /// A machine can be switched off and on.
        NodeControl = "node-control",
        /// A machine can be cut off from the API server and from the cloud.
        LinkControl = "link-control",
        /// The CCM boots on the cluster that it initialises, not on a management cluster.
        BootsInside = "boots-inside",
        /// The cluster has exactly one node.
        SingleNode = "single-node",
        /// A replica of the CCM runs that is not the leader.
        Standby = "standby",
        /// The CCM's watches of the API server can be ended and their resource versions made too old to continue.
        WatchControl = "watch-control",
        /// The API server can be made unreachable for the CCM, and for one replica of it.
        ApiControl = "api-control",
        /// The CCM's requests to the API server are recorded, with the answers.
        AuditLog = "audit-log",
        /// The harness can connect to ports on the nodes' network.
        HostPorts = "host-ports",
        /// The API server reaches kubelets at the addresses of their Nodes.
        KubeletAddresses = "kubelet-addresses",
        /// Programs on the machines can reach the cloud by a name, which the resolver of their machine and, when it runs,
        /// cluster DNS know.
        CloudName = "cloud-name",
        /// An additional cluster can be created, with suitable machines and its own cloud.
        OwnEnvironment = "own-environment",
        /// A kubelet can be configured to run an image credential provider, and to pull images from the harness's registry.
        ImageCredentials = "image-credentials",
        /// The API server uses the network proxy under test, and its direct connection to Nodes and Pods can be blocked.
        NetworkProxy = "network-proxy",
        /// Kubelets are real, and a CSI driver can be installed under the name of a cloud's.
        CsiDrivers = "csi-drivers",
        /// Control plane and kubelets can be moved to the next minor version of Kubernetes.
        VersionControl = "version-control",
        /// The manifests as shipped run more than one Pod of the CCM.
        ShippedReplicas = "shipped-replicas",
    }
}

impl Facility {
    /// Whether it is a facility of clusters, which a backend has or not.
    pub fn is_of_the_cluster(self) -> bool {
        !Facility::OF_THE_CLOUD.contains(&self) && !Facility::OF_THE_RUN.contains(&self)
    }

    /// Facilities of the harness itself and of the run: its topology, how the CCM is deployed, how many replicas it has,
    /// whether it creates its clusters and clouds itself.
    pub const OF_THE_RUN: &[Facility] = &[
        Facility::CcmControl,
        Facility::BootsInside,
        Facility::SingleNode,
        Facility::Standby,
        Facility::OwnEnvironment,
        Facility::ShippedReplicas,
    ];

    /// Facilities that require the CCM's Pods to be on the cluster that it serves.
    pub const OF_PODS_INSIDE: &[Facility] = &[Facility::BootsInside];

    /// Facilities of the cloud, which its driver has or not.
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

/// A set of facilities that can be part of a constant table of checks.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Facilities(u32);

impl Facilities {
    /// A set of these.
    pub const fn of(facilities: &[Facility]) -> Facilities {
        Facilities(0).and(facilities)
    }

    /// Adds these.
    pub const fn and(mut self, more: &[Facility]) -> Facilities {
        let mut index = 0;
        while index < more.len() {
            self.0 |= 1 << more[index] as u32;
            index += 1;
        }
        self
    }

    /// Removes these.
    pub const fn without(self, fewer: &[Facility]) -> Facilities {
        Facilities(self.0 & !Facilities::of(fewer).0)
    }

    /// Whether it contains this one.
    pub const fn contains(self, facility: Facility) -> bool {
        self.0 & (1 << facility as u32) != 0
    }

    /// Its members, in the order of [`Facility::ALL`].
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
