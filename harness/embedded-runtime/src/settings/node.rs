//! The machines of the cluster and their kubelets.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// One machine of the cluster and its kubelet.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// The Node's name, which is its host name too.
    pub name: String,
    /// Labels the kubelet sets when it registers (`--node-labels`), besides those every kubelet sets.
    pub labels: BTreeMap<String, String>,
    /// Taints the kubelet registers with (`--register-with-taints`), besides the cloud's.
    pub taints: Vec<NodeTaint>,
    /// Who is expected to initialise the Node.
    pub cloud: CloudProvider,
    /// `--node-ip`: annotated on the Node, and its addresses until the cloud says otherwise. At most one of each family,
    /// the one of the preferred family first.
    pub node_ips: Vec<IpAddr>,
    /// `--provider-id`.
    pub provider_id: Option<String>,
    /// Where its kubelet has the certificate from that it serves with.
    pub serving: ServingCertificate,
    /// The loopback address of this machine, from 127.0.0.0/8: what probes of its `hostNetwork` Pods ask, and
    /// what a program is told as `${NODE_LOOPBACK}`. `None`: the next free one.
    pub loopback: Option<Ipv4Addr>,
    /// Files of this machine by their absolute path: what `hostPath` volumes find there. Written 0600.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// What the Node has to give, as `cpu`, `memory` and so on.
    pub capacity: BTreeMap<String, String>,
}

impl NodeSpec {
    /// A machine that waits for a cloud controller manager.
    #[must_use]
    pub fn new(name: impl Into<String>) -> NodeSpec {
        let capacity = [("cpu", "8"), ("memory", "16Gi"), ("pods", "110"), ("ephemeral-storage", "100Gi")];
        NodeSpec {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            cloud: CloudProvider::External,
            node_ips: Vec::new(),
            provider_id: None,
            serving: ServingCertificate::SelfSigned,
            loopback: None,
            files: BTreeMap::new(),
            capacity: capacity.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }
}

/// Where a kubelet has the certificate from that it serves with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServingCertificate {
    /// From itself.
    SelfSigned,
    /// It asks the cluster for one once its Node has an address (`serverTLSBootstrap: true`), and again when these change.
    Requested,
}

/// A taint a kubelet registers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTaint {
    /// E.g. `node-role.kubernetes.io/control-plane`.
    pub key: String,
    /// May be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// The kubelet's `--cloud-provider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudProvider {
    /// `external`: the Node is tainted as uninitialised and waits for its addresses.
    External,
    /// Not given: the kubelet sets its own addresses.
    None,
}
