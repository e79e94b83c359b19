//! The kinds of workloads, and their roles in the boot.

/// The role of a workload in the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The cloud controller manager.
    Ccm,
    /// Initialises the Node it runs on, and only that one (Azure's design).
    NodeManager,
    /// Sets up the pod network of the Node it runs on.
    Cni,
    /// Serves the cluster's DNS.
    Dns,
    /// Anything that the boot does not wait for.
    Other,
}

/// The kinds that create Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `batch/v1` Job.
    Job,
    /// `batch/v1` CronJob.
    CronJob,
    /// `v1` Pod.
    Pod,
}

/// How a Pod finds its name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsPolicy {
    /// Cluster DNS; on the host's network the Node's. The default.
    ClusterFirst,
    /// Cluster DNS on the host's network as well.
    ClusterFirstWithHostNet,
    /// The Node's.
    Default,
    /// The name servers of `dnsConfig`.
    None,
}

impl WorkloadKind {
    /// The kind, if it belongs to one of Kubernetes' own API groups; others have kinds of the same names.
    pub fn parse(api_version: &str, kind: &str) -> Option<WorkloadKind> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if !["", "apps", "batch", "extensions"].contains(&group) {
            return None;
        }
        Some(match kind {
            "Deployment" => WorkloadKind::Deployment,
            "DaemonSet" => WorkloadKind::DaemonSet,
            "StatefulSet" => WorkloadKind::StatefulSet,
            "ReplicaSet" | "ReplicationController" => WorkloadKind::ReplicaSet,
            "Job" => WorkloadKind::Job,
            "CronJob" => WorkloadKind::CronJob,
            "Pod" => WorkloadKind::Pod,
            _ => return None,
        })
    }
}

impl std::fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// The path of the Pod's specification in an object of this kind.
pub fn spec_path(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::Pod => &["spec"],
        WorkloadKind::CronJob => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => &["spec", "template", "spec"],
    }
}

/// The path of the Pod template in an object of this kind.
pub fn template_path(kind: WorkloadKind) -> &'static [&'static str] {
    let path = spec_path(kind);
    path.split_last().map_or(path, |(_, template)| template)
}
