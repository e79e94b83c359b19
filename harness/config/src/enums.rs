//! The words that a file may choose from. Each enum is a list of words; reading, writing and error messages
//! all use this one table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The version in the `apiVersion` of every file of the harness.
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
                    _ => Err(format!("'{word}' is not a valid {}; one of {}", $what, Self::WORDS.join(", "))),
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
                /// What fits CCM and machine: embedded for a program on this machine, kind for an image, and otherwise
                /// kind if this machine has everything that it needs, or embedded.
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
        /// A CCM, optionally with other components of its vendor.
        Profile = "Profile",
        /// An image credential provider without a CCM. No cluster is created unless `cluster.backend` is `kind`, and
        /// keys of a CCM are ignored.
        ImageCredentials = "image-credentials",
        /// A network proxy of the API server without a CCM. No cluster is created unless `cluster.backend` is `kind`,
        /// and keys of a CCM are ignored.
        NetworkProxy = "network-proxy",
        /// Drivers that in-tree volumes moved to, without a CCM. The cluster is a kind cluster, and keys of a CCM are
        /// ignored.
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
        /// The reference CCM that can be broken on purpose; for `controls`.
        ReferenceCcmMutant = "reference-ccm-mutant",
        /// The reference network proxy, server and agents.
        ReferenceNetworkProxy = "reference-network-proxy",
        /// The same, but can be broken on purpose; for `controls`.
        ReferenceNetworkProxyMutant = "reference-network-proxy-mutant",
        /// The reference CSI driver, with provisioner and attacher.
        ReferenceCsiDriver = "reference-csi-driver",
        /// The same, but can be broken on purpose; for `controls`.
        ReferenceCsiDriverMutant = "reference-csi-driver-mutant",
    }
}

words! {
    /// When a run leaves cluster, cloud and CCM standing.
    Keep, "keep mode" {
        /// Everything is removed.
        Never = "never",
        /// The environment is kept if a check failed or the environment did not come up.
        OnFailure = "on-failure",
        /// Everything is kept.
        Always = "always",
    }
}

words! {
    /// Which timing flags the CCM gets.
    Timing, "timing" {
        /// `--leader-elect-lease-duration=6s`, `--leader-elect-renew-deadline=4s`, `--leader-elect-retry-period=1s` and
        /// `--node-status-update-frequency=10s`, and `--route-reconciliation-period=2s` if the CCM accepts that flag.
        Fast = "fast",
        /// The CCM's own defaults, as in production.
        Default = "default",
    }
}

words! {
    /// What identifies the Service of a load balancer.
    Ownership, "ownership" {
        /// The uid of the Service, in a label or a tag.
        Uid = "uid",
        /// The name of the load balancer, which the framework derives from the uid.
        Name = "name",
        /// Namespace and name of the Service, separated by a slash, in a description or a tag.
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
        /// No `--node-ip`, so that the addresses of the node come only from the cloud.
        Dropped = "dropped",
    }
}

words! {
    /// Which interface a CCM looks instances up with.
    Instances, "instances interface" {
        /// `Instances` (and `Zones`, if declared).
        V1 = "v1",
        /// `InstancesV2`.
        V2 = "v2",
        /// The CCM does not initialise Nodes.
        None = "none",
    }
}

words! {
    /// What load balancers send traffic to.
    Targets, "target" {
        /// The node ports of the Service on Nodes.
        NodePorts = "node-ports",
        /// Nodes at the ports of the Service, for a balancer that does not change the port of a connection.
        ServicePorts = "service-ports",
        /// Pods, directly.
        Pods = "pods",
        /// The node ports of the Service on machines that the cloud chooses itself, such as the members of an instance
        /// pool. The CCM does not choose backends, so checks of them do not apply.
        Pool = "pool",
    }
}

words! {
    /// What makes a CCM reconcile routes.
    RouteTrigger, "route trigger" {
        /// Time: every `--route-reconciliation-period`.
        Period = "period",
        /// Nodes that are added, removed or changed, at most every 10 s (gate
        /// `CloudControllerManagerWatchBasedRoutesReconciliation`).
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
        /// On another cluster, with a kubeconfig for the one it serves, as next to a hosted control plane.
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
        /// The CCM reacts to a watch event.
        Watch = "watch",
        /// A CCM Pod that was started has synced its caches and leads.
        Start = "start",
        /// After the loss of the leader, another replica is active.
        Failover = "failover",
        /// A leader that cannot renew its Lease has exited.
        StepDown = "step-down",
        /// The lifecycle loop has checked every Node.
        Life = "life",
        /// Every route is correct: two reconciliations, plus 5 s.
        Route = "route",
        /// A Service is correct. Back-off after failed attempts is added.
        Service = "service",
        /// The time that the cloud itself needs to provision or remove a load balancer; none by default.
        LoadBalancer = "load-balancer",
        /// From applying the manifests of the CCM to a cold cluster until every Node is initialised.
        Boot = "boot",
        /// A replaced credential for the cloud is in use.
        Credential = "credential",
        /// Nothing happens to a Node.
        QuietNodes = "quiet-nodes",
        /// The lifecycle loop does nothing.
        QuietLife = "quiet-life",
        /// Nothing happens to a Service and its load balancer.
        QuietServices = "quiet-services",
    }
}
