//! What a CCM says it can do, and which checks' needs that meets.

use super::words::{Instances, Protocol};
use crate::check::Capability;
use std::collections::BTreeSet;

/// The capabilities a profile declares (contract section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The interface instances are looked up with.
    pub instances: Instances,
    /// It reports zones and regions.
    pub zones: bool,
    /// It provisions load balancers.
    pub load_balancer: bool,
    /// It programs routes.
    pub routes: bool,
    /// It implements `Clusters`; no shared controller calls it.
    pub clusters: bool,
    /// Instances carry labels of the cloud's own.
    pub additional_labels: bool,
    /// Load balancer status says `ipMode`.
    pub ip_mode: bool,
    /// Nodes and Services with both IP families.
    pub dual_stack: bool,
    /// Protocols its load balancers carry.
    pub protocols: BTreeSet<Protocol>,
    /// Session affinity by client IP.
    pub affinity: bool,
    /// `loadBalancerSourceRanges`.
    pub source_ranges: bool,
    /// Several Services on one load balancer.
    pub shared_lb: bool,
    /// Leader election with two or more replicas.
    pub leader_election: bool,
}

impl Capabilities {
    /// The needs of checks that these meet.
    pub fn met(&self) -> BTreeSet<Capability> {
        [
            (Capability::Instances, self.instances != Instances::None),
            (Capability::Zones, self.zones),
            (Capability::LoadBalancer, self.load_balancer),
            (Capability::Routes, self.routes),
            (Capability::LeaderElection, self.leader_election),
            (Capability::DualStack, self.dual_stack),
            (Capability::Affinity, self.affinity),
            (Capability::SourceRanges, self.source_ranges),
        ]
        .into_iter()
        .filter_map(|(capability, declared)| declared.then_some(capability))
        .collect()
    }

    /// Everything declared, in the profile's words and order, for the report.
    pub fn declared(&self) -> Vec<String> {
        let mut words = vec![format!("instances={}", self.instances)];
        let flags = [
            ("zones", self.zones),
            ("loadBalancer", self.load_balancer),
            ("routes", self.routes),
            ("clusters", self.clusters),
            ("additionalLabels", self.additional_labels),
            ("ipMode", self.ip_mode),
            ("dualStack", self.dual_stack),
            ("affinity", self.affinity),
            ("sourceRanges", self.source_ranges),
            ("sharedLB", self.shared_lb),
            ("leaderElection", self.leader_election),
        ];
        words.extend(flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_owned()));
        if self.load_balancer {
            let carried: Vec<&str> = self.protocols.iter().map(|p| p.as_str()).collect();
            words.push(format!("protocols={}", carried.join("+")));
        }
        words
    }
}
