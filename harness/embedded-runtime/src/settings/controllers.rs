//! Which controllers run.

use std::collections::BTreeSet;

/// A controller of a cluster, by the name it has in Kubernetes. Kubelets are none: they run where there are machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// `kube-scheduler`: binds Pods to Nodes.
    Scheduler,
    /// `deployment-controller`.
    Deployment,
    /// `replicaset-controller`.
    ReplicaSet,
    /// `daemonset-controller`.
    DaemonSet,
    /// `statefulset-controller`, without volume claims.
    StatefulSet,
    /// `endpoints-controller` and `endpointslice-controller`.
    Endpoints,
    /// `namespace-controller`: empties namespaces that are deleted. Without it they stay `Terminating`.
    Namespace,
    /// `garbage-collector-controller`: deletes objects whose owners are gone.
    GarbageCollector,
    /// `node-ipam-controller`: gives Nodes their pod ranges.
    NodeIpam,
    /// `node-lifecycle-controller`: marks and taints Nodes whose kubelets are silent.
    NodeLifecycle,
    /// `taint-eviction-controller`: removes Pods that do not tolerate a Node's `NoExecute` taints.
    TaintEviction,
    /// `clusterrole-aggregation-controller`: gives ClusterRoles that gather others their rules.
    ClusterRoleAggregation,
    /// `ttl-controller`: notes at Nodes for how long their kubelets may keep Secrets and ConfigMaps.
    Ttl,
    /// `persistentvolumeclaim-protection-controller` and the like: lets volumes, claims and classes go that nothing uses.
    /// Without it those that are deleted stay.
    VolumeProtection,
    /// `pod-garbage-collector-controller`: removes Pods of Nodes that are gone.
    PodGarbageCollector,
}

impl Controller {
    /// Every controller.
    pub const ALL: [Controller; 15] = [
        Controller::Scheduler,
        Controller::Deployment,
        Controller::ReplicaSet,
        Controller::DaemonSet,
        Controller::StatefulSet,
        Controller::Endpoints,
        Controller::Namespace,
        Controller::GarbageCollector,
        Controller::NodeIpam,
        Controller::NodeLifecycle,
        Controller::TaintEviction,
        Controller::ClusterRoleAggregation,
        Controller::Ttl,
        Controller::VolumeProtection,
        Controller::PodGarbageCollector,
    ];

    /// All but these, as `--controllers=*,-deployment-controller` has it.
    #[must_use]
    pub fn all_but(left_out: &[Controller]) -> BTreeSet<Controller> {
        Controller::ALL.into_iter().filter(|controller| !left_out.contains(controller)).collect()
    }
}
