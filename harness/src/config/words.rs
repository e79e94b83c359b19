//! The words a file may choose from. Each enum is its list of words: reading, writing and the text of errors all come
//! from the one table.

use std::fmt;
use std::str::FromStr;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$item_doc:meta])* $item:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
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
                /// kind where this machine has all it takes, else embedded.
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
        /// The contract's speed-up flags (section 21): shorter lease, node status every 10 s.
        Fast = "fast",
        /// None: the CCM's own defaults, as in production.
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
    }
}

impl Ownership {
    /// What the load balancers of the Service with that uid say.
    pub fn owner(self, uid: &str) -> String {
        match self {
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
        /// No `--node-ip`: the node's addresses come from the cloud alone.
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
        /// None: it initialises no node.
        None = "none",
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
        /// Beside a hosted control plane.
        Hosted = "hosted",
    }
}

words! {
    /// A named budget of [`super::Limits`], for overriding it.
    Budget, "budget" {
        /// [`super::Limits::watch`].
        Watch = "watch",
        /// [`super::Limits::start`].
        Start = "start",
        /// [`super::Limits::failover`].
        Failover = "failover",
        /// [`super::Limits::step_down`].
        StepDown = "step-down",
        /// [`super::Limits::life`].
        Life = "life",
        /// [`super::Limits::not_ready`].
        NotReady = "not-ready",
        /// [`super::Limits::address`].
        Address = "address",
        /// [`super::Limits::route`].
        Route = "route",
        /// The fixed part of [`super::Limits::service_after`].
        Service = "service",
        /// [`super::Limits::event`].
        Event = "event",
        /// [`super::Limits::boot`].
        Boot = "boot",
        /// [`super::Limits::quiet_nodes`].
        QuietNodes = "quiet-nodes",
        /// [`super::Limits::quiet_life`].
        QuietLife = "quiet-life",
        /// [`super::Limits::quiet_routes`].
        QuietRoutes = "quiet-routes",
        /// [`super::Limits::quiet_services`].
        QuietServices = "quiet-services",
        /// [`super::Limits::quiet_addresses`].
        QuietAddresses = "quiet-addresses",
    }
}
