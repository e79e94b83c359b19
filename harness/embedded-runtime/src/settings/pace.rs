//! The speed of the cluster.

use std::time::Duration;

/// The speed of the cluster. The defaults are those of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// How often a kubelet renews its Lease (`nodeLeaseDurationSeconds` / 4: 10 s).
    pub lease_renewal: Duration,
    /// The duration a kubelet writes into its Lease (40 s).
    pub lease_duration: Duration,
    /// How often a kubelet posts its status when nothing has changed (`nodeStatusReportFrequency`, 5 min).
    pub status_report: Duration,
    /// How long a kubelet may be silent until its Node is Unknown (`--node-monitor-grace-period`, 50 s).
    pub node_grace: Duration,
    /// The same for a Node whose kubelet has never posted a status (`--node-startup-grace-period`, 60 s).
    pub node_startup_grace: Duration,
    /// How often the controller looks for silent Nodes, and for Pods to evict from them
    /// (`--node-monitor-period`, 5 s).
    pub node_check: Duration,
    /// How long Pods stay after the deletion of their Node was noticed (40 s).
    pub orphan_grace: Duration,
    /// How often the controller looks for Pods of deleted Nodes (20 s).
    pub orphan_check: Duration,
    /// Determines the moments of these looks: the same number gives the same moments after the start.
    pub seed: u64,
    /// How long a simulated container takes to start.
    pub simulated_start: Duration,
    /// The first pause before a failed container is restarted (10 s; doubles up to the longest).
    pub restart_first: Duration,
    /// The longest pause between restarts (5 min).
    pub restart_longest: Duration,
    /// How long a container must have run without a failure until its pauses start again from the first (10 min).
    pub restart_forgotten: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            lease_renewal: Duration::from_secs(10),
            lease_duration: Duration::from_secs(40),
            status_report: Duration::from_secs(300),
            node_grace: Duration::from_secs(50),
            node_startup_grace: Duration::from_secs(60),
            node_check: Duration::from_secs(5),
            orphan_grace: Duration::from_secs(40),
            orphan_check: Duration::from_secs(20),
            seed: 0,
            simulated_start: Duration::from_millis(50),
            restart_first: Duration::from_secs(10),
            restart_longest: Duration::from_secs(300),
            restart_forgotten: Duration::from_secs(600),
        }
    }
}
