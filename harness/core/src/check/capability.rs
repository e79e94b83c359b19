//! The capabilities of a CCM, as a profile declares them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a CCM must declare before a check applies to it (contract section 5).
///
/// ```
/// # use harness_core::check::*; struct Cx; async fn body(_: &Cx) -> Verdict { Ok(()) }
/// const CHECK: Check<Cx> =
///     Check::own("ACME-LB-01", "restricts clients", "Acme handbook", |cx| Box::pin(body(cx)))
///         .needs(&[Capability::LoadBalancer, Capability::SourceRanges]);
/// assert!(CHECK.needs.contains(&Capability::SourceRanges));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Instances or InstancesV2: it initialises nodes.
    Instances,
    /// InstancesV2.
    InstancesV2,
    /// It distinguishes machines that are shut down from those that run.
    Shutdown,
    /// Zones and regions are reported.
    Zones,
    /// Regions are reported, also for a cloud without zones.
    Regions,
    /// It provisions load balancers.
    LoadBalancer,
    /// Its load balancers send traffic to Nodes.
    NodeTargets,
    /// It programs routes.
    Routes,
    /// It runs with leader election and two or more replicas.
    LeaderElection,
    /// Nodes and Services with both IP families.
    DualStack,
    /// Its load balancers keep a client's connections on one backend.
    Affinity,
    /// Its load balancers admit only `loadBalancerSourceRanges`.
    SourceRanges,
    /// It implements `Clusters`.
    Clusters,
    /// Nodes get additional labels from the cloud.
    AdditionalLabels,
    /// Load balancer status contains `ipMode`.
    IpMode,
    /// Several Services share one load balancer.
    SharedLb,
    /// It leaves Services with certain annotations to other controllers.
    ImplementedElsewhere,
    /// Annotations of its vendor change load balancers.
    VendorAnnotations,
    /// Its load balancers carry UDP.
    Udp,
    /// Its load balancers carry SCTP.
    Sctp,
    /// It serves `/healthz` and `/metrics` on its secure port.
    SecurePort,
    /// It accepts the flags of the shared framework.
    FrameworkFlags,
    /// It gets service account tokens: an image credential provider.
    ServiceAccountTokens,
}

impl Capability {
    /// All capabilities.
    pub const ALL: &[Capability] = &[
        Capability::Instances,
        Capability::InstancesV2,
        Capability::Shutdown,
        Capability::Zones,
        Capability::Regions,
        Capability::LoadBalancer,
        Capability::NodeTargets,
        Capability::Routes,
        Capability::LeaderElection,
        Capability::DualStack,
        Capability::Affinity,
        Capability::SourceRanges,
        Capability::Clusters,
        Capability::AdditionalLabels,
        Capability::IpMode,
        Capability::SharedLb,
        Capability::ImplementedElsewhere,
        Capability::VendorAnnotations,
        Capability::Udp,
        Capability::Sctp,
        Capability::SecurePort,
        Capability::FrameworkFlags,
        Capability::ServiceAccountTokens,
    ];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Capability::Instances => "instances",
            Capability::InstancesV2 => "instances-v2",
            Capability::Shutdown => "shutdown",
            Capability::Zones => "zones",
            Capability::Regions => "regions",
            Capability::LoadBalancer => "load-balancer",
            Capability::NodeTargets => "node-targets",
            Capability::Routes => "routes",
            Capability::LeaderElection => "leader-election",
            Capability::DualStack => "dual-stack",
            Capability::Affinity => "affinity",
            Capability::SourceRanges => "source-ranges",
            Capability::Clusters => "clusters",
            Capability::AdditionalLabels => "additional-labels",
            Capability::IpMode => "ip-mode",
            Capability::SharedLb => "shared-lb",
            Capability::ImplementedElsewhere => "implemented-elsewhere",
            Capability::VendorAnnotations => "vendor-annotations",
            Capability::Udp => "udp",
            Capability::Sctp => "sctp",
            Capability::SecurePort => "secure-port",
            Capability::FrameworkFlags => "framework-flags",
            Capability::ServiceAccountTokens => "service-account-tokens",
        })
    }
}
