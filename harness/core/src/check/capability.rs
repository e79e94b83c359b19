//! The capabilities of a CCM, as a profile declares them.

use super::named::named;
use serde::{Deserialize, Serialize};

named! {
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
        /// It initialises Nodes (interface Instances or InstancesV2 of the framework).
        Instances = "instances",
        /// It implements the interface InstancesV2 of the framework.
        InstancesV2 = "instances-v2",
        /// It distinguishes machines that are shut down from those that run.
        Shutdown = "shutdown",
        /// It reports zones and regions.
        Zones = "zones",
        /// It reports regions, also if the cloud has no zones.
        Regions = "regions",
        /// It provisions load balancers.
        LoadBalancer = "load-balancer",
        /// Its load balancers send traffic to Nodes.
        NodeTargets = "node-targets",
        /// It programs routes.
        Routes = "routes",
        /// It runs with leader election and two or more replicas.
        LeaderElection = "leader-election",
        /// It supports Nodes and Services with both IP families.
        DualStack = "dual-stack",
        /// Its load balancers keep a client's connections on one backend.
        Affinity = "affinity",
        /// Its load balancers admit only `loadBalancerSourceRanges`.
        SourceRanges = "source-ranges",
        /// It implements the interface Clusters of the framework.
        Clusters = "clusters",
        /// It gives Nodes additional labels from the cloud.
        AdditionalLabels = "additional-labels",
        /// It writes `ipMode` into the status of Services.
        IpMode = "ip-mode",
        /// Several Services can share one of its load balancers.
        SharedLb = "shared-lb",
        /// It leaves Services with certain annotations to other controllers.
        ImplementedElsewhere = "implemented-elsewhere",
        /// Annotations of its vendor change load balancers.
        VendorAnnotations = "vendor-annotations",
        /// Its load balancers carry UDP.
        Udp = "udp",
        /// Its load balancers carry SCTP.
        Sctp = "sctp",
        /// It serves `/healthz` and `/metrics` on its secure port.
        SecurePort = "secure-port",
        /// It accepts the flags of the shared framework.
        FrameworkFlags = "framework-flags",
        /// It is an image credential provider that gets tokens of service accounts.
        ServiceAccountTokens = "service-account-tokens",
    }
}
