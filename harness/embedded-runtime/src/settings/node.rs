//! The machines of the cluster and their kubelets.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// One machine of the cluster and its kubelet.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// The Node's name, which is also its host name.
    pub name: String,
    /// Labels that the kubelet sets when it registers (`--node-labels`), in addition to the standard ones.
    pub labels: BTreeMap<String, String>,
    /// Taints that the kubelet registers with (`--register-with-taints`), in addition to the cloud's.
    pub taints: Vec<NodeTaint>,
    /// The component that initialises the Node.
    pub cloud: CloudProvider,
    /// `--node-ip`: set as an annotation of the Node, and used as its addresses until the cloud sets others.
    /// At most one of each family, the preferred family first.
    pub node_ips: Vec<IpAddr>,
    /// `--provider-id`.
    pub provider_id: Option<String>,
    /// The source of the kubelet's serving certificate.
    pub serving: ServingCertificate,
    /// The loopback address of this machine, from 127.0.0.0/8. Probes of its `hostNetwork` Pods use it, and
    /// programs get it as `${NODE_LOOPBACK}`. `None`: the next free one.
    pub loopback: Option<Ipv4Addr>,
    /// Files of this machine by their absolute path, for `hostPath` volumes. Written with mode 0600.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The capacity of the Node: `cpu`, `memory` and so on.
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

/// The source of a kubelet's serving certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServingCertificate {
    /// The kubelet signs it itself.
    SelfSigned,
    /// The kubelet requests one from the cluster once its Node has an address (`serverTLSBootstrap: true`),
    /// and again when the addresses change.
    Requested,
}

/// A taint that a kubelet registers with.
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
