//! Which controllers run.

use std::collections::BTreeSet;

/// A controller of a cluster, by its name in Kubernetes. Kubelets are not included: they run on every machine.
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
    /// `namespace-controller`: empties deleted namespaces. Without it they stay `Terminating`.
    Namespace,
    /// `garbage-collector-controller`: deletes objects whose owners are gone.
    GarbageCollector,
    /// `node-ipam-controller`: gives Nodes their pod ranges.
    NodeIpam,
    /// `node-lifecycle-controller`: marks and taints Nodes whose kubelets are silent.
    NodeLifecycle,
    /// `taint-eviction-controller`: removes Pods that do not tolerate a Node's `NoExecute` taints.
    TaintEviction,
    /// `clusterrole-aggregation-controller`: sets the rules of aggregated ClusterRoles.
    ClusterRoleAggregation,
    /// `ttl-controller`: annotates Nodes with how long their kubelets may cache Secrets and ConfigMaps.
    Ttl,
    /// `persistentvolumeclaim-protection-controller` and similar ones: release unused volumes, claims and
    /// classes. Without them, deleted ones stay.
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

    /// All controllers except these, like `--controllers=*,-deployment-controller`.
    #[must_use]
    pub fn all_but(left_out: &[Controller]) -> BTreeSet<Controller> {
        Controller::ALL.into_iter().filter(|controller| !left_out.contains(controller)).collect()
    }
}
