//! What can become true while a cluster boots, and what it waits for.

use crate::manifest::Place;
use crate::workload::Taint;

/// Something that is not true at first and may become true. Numbers index Nodes, workloads and webhooks.
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
    /// The Node has lost a taint.
    Untainted(u32, u32),
    /// Service addresses answer on the Node.
    ServicesAnswer(u32),
    /// Cluster DNS answers on the Node.
    DnsAnswers(u32),
    /// A Pod of cluster DNS runs.
    DnsRuns,
    /// Volumes can be provisioned.
    StorageWorks,
    /// The webhook can be reached.
    WebhookAnswers(u32),
    /// Pods of the workload are made.
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
    /// The API server has accepted all of the set.
    Accepted,
    /// Never becomes true; the number is that of its reason.
    Never(u32),
}

/// Why something never becomes true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reason {
    /// A sentence without its end, e.g. `Secret/kube-system/token does not exist`.
    pub(crate) words: String,
    /// Where in the manifests.
    pub(crate) place: Option<Place>,
}

/// A premise of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Premise {
    /// What has to be true.
    pub(crate) fact: usize,
    /// Where in the manifests that need comes from.
    pub(crate) place: Option<Place>,
    /// What in the manifests would take the need away.
    pub(crate) change: Option<Change>,
}

/// A way in which a fact becomes true: all premises together.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) head: usize,
    pub(crate) body: Vec<Premise>,
}

/// A change of the manifests. The number is the workload's, or the webhook's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Tolerate a taint whatever its value.
    Tolerate(u32, Taint),
    /// Use the host's network.
    HostNetwork(u32),
    /// Use the Node's DNS.
    NodeDns(u32),
    /// Take no environment from the Node's address.
    DropHostIp(u32),
    /// Do not select Nodes by this label.
    DropNodeRequirement(u32, String),
    /// Name an image that can be parsed.
    Image(u32, u32),
    /// Create the object that is referred to: kind, namespace, name.
    Provide(u32, String, String, String),
    /// Grant the rights of the contract.
    Grant(u32),
    /// Name the API server's address.
    ApiServer(u32),
    /// Name the cloud provider.
    CloudProvider(u32),
    /// Run at least one replica.
    Replicas(u32),
    /// Mend what the API server refuses.
    Mend(u32, String),
    /// Mend what the API server refuses of an object that is no workload.
    Accept(u32),
    /// Mend what else keeps Pods from running, as the words say.
    Amend(u32, String),
    /// Listen on another port of the host.
    Port(u32),
    /// Use no storage of the cluster.
    DropStorage(u32),
    /// Do not ask to be near other Pods.
    DropPodAffinity(u32),
    /// Let the webhook fail open.
    FailOpen(u32),
}
