//! The capabilities of a CCM, and the needs of checks that they meet.

use super::enums::{Instances, Protocol, RouteTrigger, Targets};
use super::schema::ordered;
use harness_core::check::Capability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The capabilities a profile declares (contract section 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(transform = ordered::<Self>)]
pub struct Capabilities {
    /// The interface that the CCM uses to look up instances.
    pub instances: Instances,
    /// The CCM distinguishes a machine that is shut down from a running one. Interface `v1` may omit this.
    pub shutdown: bool,
    /// The CCM reports zone and region. Needs `instances`.
    pub zones: bool,
    /// The CCM reports the region, also for a cloud without zones. Needs `instances`.
    #[schemars(extend("x-default" = "as `zones`"))]
    pub regions: Option<bool>,
    /// The CCM provisions load balancers.
    pub load_balancer: bool,
    /// Where load balancers send traffic.
    pub targets: Targets,
    /// The CCM manages routes.
    pub routes: bool,
    /// What triggers the reconciliation of routes. Needs `routes`.
    pub route_trigger: RouteTrigger,
    /// The CCM implements `Clusters`, which no shared controller calls.
    pub clusters: bool,
    /// Nodes get additional labels from the cloud (framework 1.30 and later). Needs `instances`.
    pub additional_labels: bool,
    /// The load balancer status contains `ipMode`. Needs `loadBalancer`.
    pub ip_mode: bool,
    /// Nodes and Services can have both IP families.
    pub dual_stack: bool,
    /// Protocols that load balancers support. Needs `loadBalancer`.
    pub protocols: BTreeSet<Protocol>,
    /// Session affinity by client IP. Needs `loadBalancer`.
    pub affinity: bool,
    /// `loadBalancerSourceRanges`. Needs `loadBalancer`.
    pub source_ranges: bool,
    /// Several Services on one load balancer. Needs `loadBalancer`.
    #[serde(rename = "sharedLB")]
    pub shared_lb: bool,
    /// Two or more replicas elect a leader with a Lease, as in every CCM of the framework.
    pub leader_election: bool,
}

impl Targets {
    /// Whether the CCM chooses Nodes as backends.
    pub fn are_chosen_nodes(self) -> bool {
        matches!(self, Targets::NodePorts | Targets::ServicePorts)
    }

    /// Whether traffic goes to the node ports of the Service.
    pub fn use_node_ports(self) -> bool {
        matches!(self, Targets::NodePorts | Targets::Pool)
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            instances: Instances::None,
            shutdown: true,
            zones: false,
            regions: None,
            load_balancer: false,
            targets: Targets::NodePorts,
            routes: false,
            route_trigger: RouteTrigger::Period,
            clusters: false,
            additional_labels: false,
            ip_mode: false,
            dual_stack: false,
            protocols: BTreeSet::from([Protocol::Tcp]),
            affinity: false,
            source_ranges: false,
            shared_lb: false,
            leader_election: true,
        }
    }
}

impl Capabilities {
    /// Whether it reports the region.
    pub fn reports_regions(&self) -> bool {
        self.regions.unwrap_or(self.zones)
    }

    /// The needs of checks that these capabilities meet; [`super::Profile::declares`] adds those of other keys.
    pub(super) fn met(&self) -> BTreeSet<Capability> {
        [
            (Capability::Instances, self.instances != Instances::None),
            (Capability::InstancesV2, self.instances == Instances::V2),
            (Capability::Shutdown, self.instances != Instances::None && self.shutdown),
            (Capability::Zones, self.zones),
            (Capability::Regions, self.reports_regions()),
            (Capability::LoadBalancer, self.load_balancer),
            (Capability::NodeTargets, self.load_balancer && self.targets.are_chosen_nodes()),
            (Capability::Routes, self.routes),
            (Capability::LeaderElection, self.leader_election),
            (Capability::DualStack, self.dual_stack),
            (Capability::Affinity, self.affinity),
            (Capability::SourceRanges, self.source_ranges),
            (Capability::Clusters, self.clusters),
            (Capability::AdditionalLabels, self.additional_labels),
            (Capability::IpMode, self.ip_mode),
            (Capability::SharedLb, self.shared_lb),
            (Capability::Udp, self.load_balancer && self.protocols.contains(&Protocol::Udp)),
            (Capability::Sctp, self.load_balancer && self.protocols.contains(&Protocol::Sctp)),
        ]
        .into_iter()
        .filter_map(|(capability, declared)| declared.then_some(capability))
        .collect()
    }

    /// All declared capabilities, in the profile's words and order, for the report.
    pub fn declared(&self) -> Vec<String> {
        let mut words = vec![format!("instances={}", self.instances)];
        let flags = [
            ("zones", self.zones),
            ("regions", self.reports_regions() && !self.zones),
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
        if self.instances != Instances::None && !self.shutdown {
            words.push("shutdown=false".to_owned());
        }
        if self.load_balancer && self.targets != Targets::NodePorts {
            words.push(format!("targets={}", self.targets));
        }
        if self.routes && self.route_trigger != RouteTrigger::Period {
            words.push(format!("routeTrigger={}", self.route_trigger));
        }
        if self.load_balancer {
            let carried: Vec<&str> = self.protocols.iter().map(|p| p.as_str()).collect();
            words.push(format!("protocols={}", carried.join("+")));
        }
        words
    }
}
