//! What a running environment has to offer to checks.

use super::Session;
use harness_config::{Deployment, Offer};
use harness_core::check::Facility;
use std::collections::BTreeSet;

/// What is done to the CCM's Pods, or goes by way of their machine.
const OF_PODS: &[Facility] = &[Facility::ProcessControl, Facility::HostPorts];

impl Session {
    /// What the machinery can do: what the cluster's machines and the cloud's driver allow, and what the harness brings
    /// itself.
    pub fn facilities(&self) -> BTreeSet<Facility> {
        let mut all = self.cluster.facilities();
        if self.state.management.is_some() {
            // What is done to its Pods is done where they are.
            let there = self.ccm_site.cluster().facilities();
            all.retain(|one| !OF_PODS.contains(one));
            all.extend(there.into_iter().filter(|one| OF_PODS.contains(one)));
        }
        all.extend(self.cloud.facilities());
        all.insert(Facility::CcmControl);
        // A hosted CCM has no Pods on the cluster whose boot could be judged.
        all.extend((self.plan.profile.deployment == Deployment::InCluster).then_some(Facility::BootsInside));
        all.extend((self.machines().len() == 1).then_some(Facility::SingleNode));
        all.extend((self.state.replicas.len() > 1).then_some(Facility::Standby));
        let makes_more = self.plan.cluster.desired().own().is_some() && self.plan.profile.cloud.is_many();
        all.extend(makes_more.then_some(Facility::OwnEnvironment));
        all.extend(self.ccm.ships_replicas().then_some(Facility::ShippedReplicas));
        if self.state.cloud.name.is_none() {
            all.remove(&Facility::CloudName);
        }
        all
    }

    /// What is there for checks to use, all of it known.
    pub fn offer(&self) -> Offer {
        Offer {
            facilities: Some(self.facilities()),
            cloud: Some(self.cloud.driver().to_owned()),
            served_minor: Some(self.state.served_minor),
            ..Offer::declared(&self.plan.profile)
        }
    }
}
