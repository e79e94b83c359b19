//! The words a file may choose from. Each enum is its list of words: reading, writing and the text of errors all come
//! from the one table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The version every file of the harness carries as `apiVersion`.
pub const API_VERSION: &str = "ccm-conformance/v1";

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$item_doc:meta])* $item:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$item_doc])* #[serde(rename = $word)] $item,)+
        }

        impl $name {
            /// Every value, in the order of the table.
            pub const ALL: &[$name] = &[$($name::$item),+];
            /// Every word, in the same order.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$item => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok($name::$item),)+
                    _ => Err(format!("'{word}' is no {}; one of {}", $what, Self::WORDS.join(", "))),
                }
            }
        }
    };
}

macro_rules! backend_words {
    ($($(#[$doc:meta])* $item:ident = $word:literal in $folder:ident,)+) => {
        words! {
            /// Where the cluster comes from, as it is asked for.
            BackendChoice, "backend" {
                /// What fits CCM and machine: embedded for a program of this machine, kind for an image, else kind where this machine has all it takes and embedded where not.
                Auto = "auto",
                $($(#[$doc])* $item = $word,)+
            }
        }

        words! {
            /// Where the cluster comes from, once that is settled.
            BackendKind, "backend" {
                $($(#[$doc])* $item = $word,)+
            }
        }

        impl BackendChoice {
            /// The backend that was named; `None` when the choice is left to the harness.
            pub const fn named(self) -> Option<BackendKind> {
                match self {
                    BackendChoice::Auto => None,
                    $(BackendChoice::$item => Some(BackendKind::$item),)+
                }
            }
        }
    };
}

backends!(backend_words);

words! {
    /// What a profile describes.
    ProfileKind, "kind of profile" {
        /// A CCM, and perhaps what its vendor ships beside it.
        Profile = "Profile",
        /// An image credential provider and no CCM: no cluster is made unless `cluster.backend` is `kind`, and keys of a CCM have no meaning.
        ImageCredentials = "image-credentials",
        /// A network proxy of the API server and no CCM: no cluster is made unless `cluster.backend` is `kind`, and keys of a CCM have no meaning.
        NetworkProxy = "network-proxy",
        /// Drivers that in-tree volumes moved to, and no CCM: their cluster is of kind, and keys of a CCM have no meaning.
        CsiMigration = "csi-migration",
    }
}

words! {
    /// A driver that in-tree volumes of a cloud moved to.
    CsiDriver, "driver" {
        /// Of `kubernetes.io/aws-ebs`.
        Ebs = "ebs.csi.aws.com",
        /// Of `kubernetes.io/gce-pd`.
        GcePd = "pd.csi.storage.gke.io",
        /// Of `kubernetes.io/azure-disk`.
        AzureDisk = "disk.csi.azure.com",
        /// Of `kubernetes.io/azure-file`.
        AzureFile = "file.csi.azure.com",
        /// Of `kubernetes.io/cinder`.
        Cinder = "cinder.csi.openstack.org",
        /// Of `kubernetes.io/vsphere-volume`.
        Vsphere = "csi.vsphere.vmware.com",
        /// Of `kubernetes.io/portworx-volume`.
        Portworx = "pxd.portworx.com",
    }
}

words! {
    /// A command of this program that is a CCM, a network proxy or a CSI driver.
    CcmCommand, "command" {
        /// The reference CCM.
        ReferenceCcm = "reference-ccm",
        /// The reference CCM, able to be broken on purpose; for `controls`.
        ReferenceCcmMutant = "reference-ccm-mutant",
        /// The reference network proxy, server and agents.
        ReferenceNetworkProxy = "reference-network-proxy",
        /// The same, able to be broken on purpose; for `controls`.
        ReferenceNetworkProxyMutant = "reference-network-proxy-mutant",
        /// The reference CSI driver, with provisioner and attacher.
        ReferenceCsiDriver = "reference-csi-driver",
        /// The same, able to be broken on purpose; for `controls`.
        ReferenceCsiDriverMutant = "reference-csi-driver-mutant",
    }
}

words! {
    /// When a run leaves cluster, cloud and CCM standing.
    Keep, "keep mode" {
        /// Everything is removed.
        Never = "never",
        /// Kept when a check failed or the environment did not come up.
        OnFailure = "on-failure",
        /// Everything is left.
        Always = "always",
    }
}

words! {
    /// Which timing flags the CCM gets.
    Timing, "timing" {
        /// `--leader-elect-lease-duration=6s`, `--leader-elect-renew-deadline=4s`, `--leader-elect-retry-period=1s` and
        /// `--node-status-update-frequency=10s`, and `--route-reconciliation-period=2s` where that flag is accepted.
        Fast = "fast",
        /// The CCM's own defaults, as in production.
        Default = "default",
    }
}

words! {
    /// What of a load balancer says which Service it is for.
    Ownership, "ownership" {
        /// The Service's uid, in a label or a tag.
        Uid = "uid",
        /// Its own name, which the framework makes of the uid.
        Name = "name",
        /// The Service's namespace and name with a slash between them, in a description or a tag.
        Service = "service",
    }
}

impl Ownership {
    /// What the load balancers of the Service with that uid say; `service` is its namespace and name.
    pub fn owner(self, uid: &str, service: &str) -> String {
        match self {
            Ownership::Service => service.to_owned(),
            Ownership::Uid => uid.to_owned(),
            // k8s.io/cloud-provider cloud.go DefaultLoadBalancerName: 32 characters, as some clouds take no more.
            Ownership::Name => format!("a{uid}").chars().filter(|c| *c != '-').take(32).collect(),
        }
    }
}

words! {
    /// What kubelets write into `spec.providerID`.
    ProviderId, "provider id mode" {
        /// Nothing; the CCM fills it in.
        Empty = "empty",
        /// The id that the harness chose, with `--provider-id`.
        Chosen = "chosen",
    }
}

words! {
    /// Whether kubelets announce a node IP of their own.
    NodeIp, "node IP mode" {
        /// `--node-ip` as kind sets it.
        Kept = "kept",
        /// No `--node-ip`, so that the node's addresses come from the cloud alone.
        Dropped = "dropped",
    }
}

words! {
    /// Which interface a CCM looks instances up with.
    Instances, "instances interface" {
        /// `Instances` (and `Zones`, when declared).
        V1 = "v1",
        /// `InstancesV2`.
        V2 = "v2",
        /// It initialises no node.
        None = "none",
    }
}

words! {
    /// What load balancers send traffic to.
    Targets, "target" {
        /// The Service's node ports on Nodes.
        NodePorts = "node-ports",
        /// Nodes at the Service's own ports: a balancer that leaves the port of a connection as it is.
        ServicePorts = "service-ports",
        /// Pods, past every Node.
        Pods = "pods",
    }
}

words! {
    /// What makes a CCM reconcile routes.
    RouteTrigger, "route trigger" {
        /// Time: every `--route-reconciliation-period`.
        Period = "period",
        /// Nodes that come, go or change, at most every 10 s (gate `CloudControllerManagerWatchBasedRoutesReconciliation`).
        NodeChanges = "node-changes",
    }
}

words! {
    /// A protocol of a Service port.
    Protocol, "protocol" {
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// SCTP.
        Sctp = "SCTP",
    }
}

words! {
    /// Where the CCM runs.
    Deployment, "deployment style" {
        /// In the cluster it serves.
        InCluster = "in-cluster",
        /// On another cluster, with a kubeconfig for the one it serves: beside a hosted control plane.
        Hosted = "hosted",
    }
}

words! {
    /// A type of Node addresses.
    AddressType, "type of addresses" {
        /// The Node's host name.
        Hostname = "Hostname",
        /// An address inside the cluster's network.
        InternalIp = "InternalIP",
        /// An address reachable from outside.
        ExternalIp = "ExternalIP",
        /// A DNS name that resolves inside the cluster's network.
        InternalDns = "InternalDNS",
        /// A DNS name that resolves outside.
        ExternalDns = "ExternalDNS",
    }
}

words! {
    /// A named budget of [`Limits`](super::Limits), for overriding it.
    Budget, "budget" {
        /// A watch event is acted upon.
        Watch = "watch",
        /// A CCM Pod that was started has its caches synced and leads.
        Start = "start",
        /// The leader is gone; another replica is active.
        Failover = "failover",
        /// A leader that cannot renew has exited.
        StepDown = "step-down",
        /// The lifecycle loop has looked at every node.
        Life = "life",
        /// Every route is as wanted: two reconciliations, and 5 s.
        Route = "route",
        /// A Service is as wanted; the pauses of a controller whose tries failed come on top.
        Service = "service",
        /// What the cloud itself takes to bring a load balancer into service, or to take one away; nothing by default.
        LoadBalancer = "load-balancer",
        /// The CCM's manifests are applied to a cold cluster; every node is initialised.
        Boot = "boot",
        /// A credential for the cloud that was replaced is in use.
        Credential = "credential",
        /// Nothing happens to a node.
        QuietNodes = "quiet-nodes",
        /// The lifecycle loop does nothing.
        QuietLife = "quiet-life",
        /// Nothing happens to a Service and its load balancer.
        QuietServices = "quiet-services",
    }
}
