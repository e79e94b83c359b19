//! The facts that can become true while a cluster boots, and the premises of each.

use bootstrap_manifests::manifest::Place;
use bootstrap_manifests::workload::Taint;

/// Something that is initially false and may become true. Numbers are indices of Nodes, workloads and webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// The Node is initialised: its taint is gone, the cloud's labels are on it.
    Initialised(u32),
    /// The Node has an address.
    Addressed(u32),
    /// The pod network of the Node is set up.
    Networked(u32),
    /// The Node is Ready.
    Ready(u32),
    /// A taint of the Node is removed.
    Untainted(u32, u32),
    /// Service addresses answer on the Node.
    ServicesAnswer(u32),
    /// Cluster DNS answers on the Node.
    DnsAnswers(u32),
    /// A Pod of cluster DNS runs.
    DnsRuns,
    /// Volumes can be provisioned.
    StorageWorks,
    /// Ordinary Pods are created.
    OrdinaryPods,
    /// The webhook can be reached.
    WebhookAnswers(u32),
    /// A Service through which a CCM reaches its cloud answers on the Node.
    CloudAnswers(u32, u32),
    /// Pods of the workload are created.
    Made(u32),
    /// A Pod of the workload may be bound to the Node.
    Schedulable(u32, u32),
    /// A Pod of the workload is bound to the Node.
    Bound(u32, u32),
    /// A Pod of the workload runs on the Node.
    Runs(u32, u32),
    /// It reaches what it needs.
    Works(u32, u32),
    /// Some Pod of the workload works.
    Serves(u32),
    /// Never becomes true; the number is that of its reason.
    Never(u32),
}

/// Why something never becomes true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reason {
    /// A sentence without its final full stop, e.g. `Secret/kube-system/token does not exist`.
    pub(crate) words: String,
    /// Its place in the manifests.
    pub(crate) place: Option<Place>,
}

/// A premise of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Premise {
    /// What must be true.
    pub(crate) fact: usize,
    /// The place in the manifests that causes this premise.
    pub(crate) place: Option<Place>,
    /// The change of the manifests that would remove this premise.
    pub(crate) change: Option<Change>,
}

/// A way for a fact to become true: all premises together.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) head: usize,
    pub(crate) body: Vec<Premise>,
}

/// A change of the manifests. The number is an index of the workload or the webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Tolerate a taint with any value.
    Tolerate(u32, Taint),
    /// Use the host's network.
    HostNetwork(u32),
    /// Use the Node's DNS.
    NodeDns(u32),
    /// Do not read the Node's address into the environment.
    DropHostIp(u32),
    /// Do not select Nodes by this label.
    DropNodeRequirement(u32, String),
    /// Use an image reference that can be parsed.
    Image(u32, u32),
    /// Create the object that is referred to: kind, namespace, name.
    Provide(u32, String, String, String),
    /// Grant the permissions of the contract.
    Grant(u32),
    /// Set the API server's address.
    ApiServer(u32),
    /// Set the cloud provider.
    CloudProvider(u32),
    /// Run at least one replica.
    Replicas(u32),
    /// Fix what the API server refuses in a workload.
    Repair(u32, String),
    /// Fix another setting that keeps Pods from running, as described.
    Amend(u32, String),
    /// Listen on another port of the host.
    Port(u32),
    /// Use no storage of the cluster.
    DropStorage(u32),
    /// Do not require affinity to other Pods.
    DropPodAffinity(u32),
    /// Make the webhook fail open.
    FailOpen(u32),
}
