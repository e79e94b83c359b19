//! The kinds of workloads, and what they do for the boot.

/// What a workload does for the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The cloud controller manager.
    Ccm,
    /// Initialises the Node it runs on, and only that one (Azure's design).
    NodeManager,
    /// Sets up the pod network of the Node it runs on.
    Cni,
    /// Answers for the cluster's DNS.
    Dns,
    /// Nothing the boot waits for.
    Other,
}

/// The kinds that make Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkloadKind {
    Deployment,
    DaemonSet,
    StatefulSet,
    ReplicaSet,
    Job,
    CronJob,
    Pod,
}

/// How a Pod finds its name servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DnsPolicy {
    /// Cluster DNS; the Node's on the host's network. The default.
    ClusterFirst,
    /// Cluster DNS on the host's network as well.
    ClusterFirstWithHostNet,
    /// The Node's.
    Default,
    /// What `dnsConfig` says.
    None,
}

impl WorkloadKind {
    /// The kind, when it is one of Kubernetes' own API groups; others have kinds of the same names.
    pub(crate) fn parse(api_version: &str, kind: &str) -> Option<WorkloadKind> {
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

/// Where the Pod's specification is below an object of this kind.
pub(crate) fn spec_path(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::Pod => &["spec"],
        WorkloadKind::CronJob => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => &["spec", "template", "spec"],
    }
}

/// Where the Pod template is below an object of this kind.
pub(crate) fn template_path(kind: WorkloadKind) -> &'static [&'static str] {
    let path = spec_path(kind);
    path.split_last().map_or(path, |(_, template)| template)
}
